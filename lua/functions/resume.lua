-- Allow claims again and wake a consumer. Reply: ok.
function functions.resume(roots)
  local q = queue.open(roots[1])
  q.call('HDEL', keys.config(q.root), 'paused')
  queue.wake_all(q)
  queue.close(q)
  return 'ok'
end
