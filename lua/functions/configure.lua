-- Set what a queue keeps. Arguments: names and values, flat. Reply: ok.
function functions.configure(keys, args)
  local q = queue.open(keys[1])
  q.call('HSET', q.root .. ':config', unpack(args))
  return 'ok'
end
