-- What became of a write. Reply: its last batch, how many stages are left to publish, how many jobs were committed, and
-- how many of them were added; nothing where it isn't known.
function functions.read_write(roots, args)
  local unit = unit.open(roots[1])
  local write = staged.load_write(unit, args[1])
  if not write then
    return {}
  end
  return { write.batch, write.left, write.jobs, write.added }
end
