-- Allow claims again and wake a consumer. Reply: ok.
function functions.resume(keys)
  local q = queue.open(keys[1])
  q.call('HDEL', q.root .. ':config', 'paused')
  queue.leave_wake(q)
  return 'ok'
end
