-- Say that an incarnation lives. Reply: ok or gone, then the ids that are asked to stop.
local CANCELS = limits.CANCELS_A_BEAT

function functions.beat(roots, args)
  local incarnation = unpack(args)
  local unit = unit.open(roots[1])
  local lease_ms = incarnations.get(unit, incarnation, 'lease_ms')
  if not lease_ms then
    return { 'gone' }
  end
  local beats = keys.beats(unit.root)
  local count = incarnations.beat(unit.call('HGET', beats, incarnation))
  unit.call('HSET', beats, incarnation, numbers.text(count + 1) .. ' ' .. lease_ms .. ' ' .. unit.now_text)
  local reply = { 'ok' }
  for _, id in ipairs(unit.call('SRANDMEMBER', keys.cancels(unit.root, incarnation), CANCELS)) do
    reply[#reply + 1] = id
  end
  return reply
end
