-- The incarnations of a queue. Reply: incarnation, beat, ms since it, info, registered_ms, active an incarnation.

function functions.workers(roots)
  local unit = unit.open(roots[1])
  local reply = {}
  local beats = unit.call('HGETALL', keys.beats(unit.root))
  for i = 1, #beats, 2 do
    local v = unit.call('HMGET', keys.worker(unit.root, beats[i]), 'info', 'registered_ms')
    local n = #reply
    reply[n + 1], reply[n + 2] = beats[i], beats[i + 1]
    reply[n + 3] = numbers.text(incarnations.silent_ms(unit, beats[i + 1]))
    reply[n + 4], reply[n + 5] = v[1] or '', v[2] or '0'
    reply[n + 6] = numbers.text(unit.call('SCARD', keys.processing(unit.root, beats[i])))
  end
  return reply
end
