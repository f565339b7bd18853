-- Delete a queue in which there is no job, with all that is kept of it; atomic because a job may come meanwhile.
-- Statistics, producers' calls, stages that nobody committed and writes that are published end by their TTL.
-- Reply: how many committed stages are left for another call, gates where only gates are left that owe tokens, or used
-- and nothing changed.

local STATES = { 'queued', 'scheduled', 'retrying', 'active', 'blocked' }

local function has_jobs(unit)
  for _, n in ipairs(unit.call('HMGET', keys.counts(unit.root), unpack(STATES))) do
    if numbers.read(n, 0) > 0 then
      return true
    end
  end
  for _, key in ipairs({ keys.finished(unit.root), keys.dead(unit.root) }) do
    if unit.call('ZCARD', key) > 0 then
      return true
    end
  end
  local stands_for_gates = unit.call('ZSCORE', keys.delayed(unit.root), record.GATES) and 1 or 0
  return unit.call('ZCARD', keys.delayed(unit.root)) > stands_for_gates
end

-- Those in whose lines anything may stand, and nobody comes for it any more.
local function lanes(unit)
  local found = { [limits.DEFAULT_LANE] = true }
  for _, lane in ipairs(unit.call('HVALS', keys.lanes(unit.root))) do
    found[lane] = true
  end
  for _, lane in ipairs(counts.lanes(unit)) do
    found[lane] = true
  end
  return found
end

function functions.delete_queue(roots, args)
  local unit = unit.open(roots[1])
  local is_forced = args[1] == '1'
  local known = unit.call('HKEYS', keys.beats(unit.root))
  if has_jobs(unit) or (#known > 0 and not is_forced) then
    return 'used'
  end
  local left = staged.erase(unit)
  if left > 0 then
    return left
  end
  for _, incarnation in ipairs(known) do
    incarnations.delete(unit, incarnation)
  end
  for lane in pairs(lanes(unit)) do
    moves.forget_lane(unit, lane)
  end
  local root, had_gates = unit.root, settings.of(unit).has_gates
  unit.call('UNLINK', keys.beats(root), keys.woken(root), keys.blocked(root), keys.events(root), keys.readers(root))
  unit.call('UNLINK', keys.lanes(root), keys.config(root), keys.counts(root), keys.limits(root))
  unit.call('UNLINK', keys.lines(root), keys.gates(root), keys.delayed(root), keys.strikes(root), keys.struck(root))
  return had_gates and 'gates' or 0
end
