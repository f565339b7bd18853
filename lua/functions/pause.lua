-- Stop claims of a queue. Reply: ok.
function functions.pause(keys)
  local q = queue.open(keys[1])
  queue.configure(q, 'paused', '1')
  return 'ok'
end
