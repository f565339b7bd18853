-- The incarnations of a queue. Reply: incarnation, beat, ms since it, info, registered_ms, active an incarnation.

function functions.workers(roots)
  local unit = unit.open(roots[1])
  local reply = {}
  local beats = unit.call('HGETALL', keys.beats(unit.root))
  for i = 1, #beats, 2 do
    for _, word in ipairs(incarnations.words(unit, beats[i], beats[i + 1])) do
      reply[#reply + 1] = word
    end
  end
  return reply
end
