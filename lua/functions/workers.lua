-- The incarnations of a queue. Reply: incarnation, beat, ms since it, info, since, active an incarnation.
flags.workers = { 'no-writes' }

function functions.workers(roots)
  local q = queue.open(roots[1])
  local reply = {}
  local beats = q.call('HGETALL', keys.beats(q.root))
  for i = 1, #beats, 2 do
    local v = q.call('HMGET', keys.worker(q.root, beats[i]), 'info', 'since')
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = beats[i], beats[i + 1], queue.text(worker.silent_ms(q, beats[i + 1]))
    reply[n + 4], reply[n + 5] = v[1] or '', v[2] or '0'
    reply[n + 6] = queue.text(q.call('SCARD', keys.processing(q.root, beats[i])))
  end
  return reply
end
