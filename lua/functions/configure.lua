-- Set what a queue keeps. Arguments: names and values, flat. Reply: ok.
function functions.configure(roots, args)
  local q = queue.open(roots[1])
  queue.configure(q, unpack(args))
  return 'ok'
end
