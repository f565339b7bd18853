-- Allow claims again and wake a consumer. Reply: ok.
function functions.resume(keys)
  local q = queue.open(keys[1])
  q.call('HDEL', q.root .. ':config', 'paused')
  queue.wake_all(q)
  queue.close(q)
  return 'ok'
end
