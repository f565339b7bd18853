-- Set what a queue keeps. Arguments: names and values, flat. Reply: ok.
function functions.configure(keys, args)
  local q = queue.open(keys[1])
  queue.configure(q, unpack(args))
  return 'ok'
end
