-- Store the jobs that one call has staged, the first that is left of the oldest committed stage. Atomic because others
-- publish too: what is stored is taken off the stage last, so that after a failure the same jobs come again, as
-- duplicates. Reply: how many stages are left.

local ADDED = { queued = 1, scheduled = 1 }

local function store(unit, words)
  local added = 0
  for _, verdict in ipairs(batch.store(unit, words, 1)) do
    added = added + (ADDED[verdict] or 0)
  end
  unit:close()
  return added
end

function functions.publish(roots)
  local unit = unit.open(roots[1])
  local name = unit.call('LINDEX', keys.publish(unit.root), '0')
  if not name then
    return 0
  end
  local words = staged.next_words(unit, name)
  if not words or not staged.trim(unit, name, words, store(unit, words)) then
    staged.finish(unit, name)
  end
  return unit.call('LLEN', keys.publish(unit.root))
end
