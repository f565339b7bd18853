-- Drop stages of a write that are not committed; atomic because one may be committed meanwhile.
-- Arguments: the write's id, then tokens. Reply: how many were dropped.
function functions.discard(roots, args)
  local unit, n = unit.open(roots[1]), 0
  for i = 2, #args do
    local name = staged.name(args[i], args[1])
    if not staged.is_committed(unit, name) then
      n = n + unit.call('UNLINK', keys.stage(unit.root, name))
    end
  end
  return n
end
