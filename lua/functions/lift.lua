-- Lift a strike, and open its line as far as a call may. Reply: 1 if it was there, else 0.
function functions.lift(roots, args)
  local unit = unit.open(roots[1])
  local was_there = strikes.lift(unit, args[1])
  if was_there then
    lines.let_go(unit, args[1])
    wake.all(unit)
  end
  lines.close(unit)
  return was_there and 1 or 0
end
