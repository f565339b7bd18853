-- Stop claims of a queue. Reply: ok.
function functions.pause(roots)
  local q = queue.open(roots[1])
  queue.configure(q, 'paused', '1')
  return 'ok'
end
