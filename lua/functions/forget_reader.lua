-- Drop a reader of the events. Arguments: its name. Reply: whether there was one.
function functions.forget_reader(roots, args)
  return readers.forget(unit.open(roots[1]), args[1]) and 1 or 0
end
