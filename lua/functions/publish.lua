-- Store the jobs that one call has staged, the first that is left of the oldest committed stage. Atomic because others
-- publish too: what is stored is taken off the stage last, so that after a failure the same jobs come again, as
-- duplicates. Reply: how many stages are left.

-- What the server says of itself or of the queue, and not of words that are no jobs: those jobs stay.
local function is_refusal(said)
  local word = string.match(said, '^(%u+) ')
  return word ~= nil and word ~= 'BADCALL' and word ~= 'ERR'
end

-- Return how many of the jobs are new. Words that are none hold up nothing: they count as no jobs.
local function store(unit, words)
  local is_done, said, added = pcall(batch.store, unit, words, 1, true)
  if not is_done then
    said = type(said) == 'table' and said.err or said -- servers give an error as a table or as its text
    if is_refusal(said) then
      error(redis.error_reply(said))
    end
    damage.note(unit.root, 'stage')
  end
  lines.close(unit)
  return added or 0
end

function functions.publish(roots)
  local unit = unit.open(roots[1])
  local name = unit.call('LINDEX', keys.committed(unit.root), '0')
  if not name then
    return 0
  end
  local words = staged.next_words(unit, name)
  if not words or not staged.trim(unit, name, store(unit, words)) then
    staged.finish(unit, name)
  end
  return unit.call('LLEN', keys.committed(unit.root))
end
