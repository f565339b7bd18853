-- Set the terms of a limit, '' for none, over what workers and jobs say, and open its gates as far as a call may.
-- Arguments: the limit, its terms. Reply: ok.
function functions.set_limit(roots, args)
  local unit = unit.open(roots[1])
  local limit, text = unpack(args)
  if terms.set(unit, limit, text) then
    lines.follow(unit, limit, limits.GATES_LOOKS)
  end
  lines.close(unit)
  return 'ok'
end
