-- Make an incarnation known, so that whatever it claims can be found if it dies.
-- Reply: ok, or NEWLAYOUT when a newer release has written this queue.
local LAYOUT = 1

function functions.register(roots, args)
  local incarnation, lease_ms, info, channel = unpack(args)
  local q = queue.open(roots[1])
  local layout = job.number(q.call('HGET', keys.config(q.root), 'layout'), LAYOUT)
  if layout > LAYOUT then
    return redis.error_reply('NEWLAYOUT the queue has layout ' .. layout .. ', this release knows ' .. LAYOUT)
  end
  -- The lanes of the tasks that it knows.
  for at = 5, #args, 2 do
    local task, lane = args[at], args[at + 1]
    if lane == job.DEFAULT_LANE then
      q.call('HDEL', keys.lanes(q.root), task)
    else
      q.call('HSET', keys.lanes(q.root), task, lane)
    end
  end
  q.call('HSET', keys.config(q.root), 'layout', LAYOUT)
  local key = keys.worker(q.root, incarnation)
  q.call('HSET', key, 'lease', lease_ms, 'info', info, 'since', q.now_text, 'channel', channel)
  q.call('HSETNX', key, 'claim', '0')
  q.call('HSETNX', key, 'settle', '0')
  q.call('HSET', keys.beats(q.root), incarnation, '0 ' .. lease_ms .. ' ' .. q.now_text)
  return 'ok'
end
