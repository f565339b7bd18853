-- All that is kept of one job. Reply: nothing, or what `reading` returns.

function functions.get(roots, args)
  return reading.words(unit.open(roots[1]), args[1]) or {}
end
