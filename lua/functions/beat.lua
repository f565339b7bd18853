-- Say that an incarnation lives. Reply: ok or gone, then the ids that are asked to stop.
local CANCELS = limits.CANCELS_A_BEAT

function functions.beat(roots, args)
  local incarnation = unpack(args)
  local q = queue.open(roots[1])
  local lease = worker.get(q, incarnation, 'lease')
  if not lease then
    return { 'gone' }
  end
  local beats = keys.beats(q.root)
  local count = worker.beat(q.call('HGET', beats, incarnation))
  q.call('HSET', beats, incarnation, queue.text(count + 1) .. ' ' .. lease .. ' ' .. q.now_text)
  local reply = { 'ok' }
  for _, id in ipairs(q.call('SRANDMEMBER', keys.cancels(q.root, incarnation), CANCELS)) do
    reply[#reply + 1] = id
  end
  return reply
end
