-- Make an incarnation known, so that whatever it claims can be found if it dies.
-- Reply: ok, or NEWLAYOUT when a newer release has written this queue.
local LAYOUT = 1

function functions.register(keys, args)
  local incarnation, lease_ms, info = unpack(args)
  local q = queue.open(keys[1])
  local layout = tonumber(q.call('HGET', q.root .. ':config', 'layout') or LAYOUT)
  if layout > LAYOUT then
    return redis.error_reply('NEWLAYOUT the queue has layout ' .. layout .. ', this release knows ' .. LAYOUT)
  end
  q.call('HSET', q.root .. ':config', 'layout', LAYOUT)
  q.call('HSET', worker.key(q, incarnation), 'lease', lease_ms, 'info', info, 'since', q.now_text)
  q.call('HSET', q.root .. ':beats', incarnation, '0 ' .. lease_ms .. ' ' .. q.now_text)
  return 'ok'
end
