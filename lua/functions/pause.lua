-- Stop claims of a queue. Reply: ok.
function functions.pause(keys)
  local q = queue.open(keys[1])
  q.call('HSET', q.root .. ':config', 'paused', '1')
  return 'ok'
end
