-- The limits of a queue. Reply: names and what is known of each, flat.
function functions.limits(roots)
  return terms.all(unit.open(roots[1]))
end
