-- Forget what those of these gates owe to a rate in which nobody is: their queue was deleted. Reply: ok.
function functions.forget_gates(roots, args)
  local unit = unit.open(roots[1])
  for _, name in ipairs(args) do
    gates.forget(unit, name)
  end
  return 'ok'
end
