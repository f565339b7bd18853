-- Set what a queue keeps. Arguments: names and values, flat. Reply: ok.
function functions.configure(roots, args)
  local unit = unit.open(roots[1])
  settings.set(unit, unpack(args))
  return 'ok'
end
