-- The places of ended jobs, by end: completed and cancelled ones in `finished`, dead letters in `dead`.
local PRUNED = limits.PRUNED_A_CALL

local function key_of(unit, state)
  return state == 'failed' and keys.dead(unit.root) or keys.finished(unit.root)
end

-- Note jobs that have ended in a state.
function history.add(unit, state, ids)
  local what = state == 'failed' and 'dead' or 'finished'
  local list = unit[what]
  if not list then
    list = {}
    unit[what] = list
  end
  local n, now_text = #list, unit.now_text
  for i, id in ipairs(ids) do
    list[n + 2 * i - 1], list[n + 2 * i] = now_text, id
  end
end

-- Take the place of a job away.
function history.remove(unit, state, id)
  unit.call('ZREM', key_of(unit, state), id)
end

local function write(unit, call, state, members, limit)
  local key = key_of(unit, state)
  for first = 1, #members, 1000 do
    call('ZADD', key, unpack(members, first, math.min(first + 999, #members)))
  end
  local excess = call('ZCARD', key) - limit
  if excess > 0 then
    -- More than came in, so that a lowered limit is reached, but bounded.
    local popped = call('ZPOPMIN', key, math.min(excess, #members + 100))
    for i = 1, #popped, 2 do
      record.erase_ended(unit, popped[i], state == 'failed')
    end
  end
end

-- Write the places that were noted, and make room for them.
function history.write(unit, call)
  if unit.finished then
    write(unit, call, 'completed', unit.finished, (unit.settings or settings.of(unit)).history)
    unit.finished = false
  end
  if unit.dead then
    write(unit, call, 'failed', unit.dead, settings.of(unit).dead_letters)
    unit.dead = false
  end
end

-- Erase dead letters that are too old; return whether there may be more.
function history.prune_old(unit)
  local key, until_ms = keys.dead(unit.root), numbers.text(unit.now_ms - settings.of(unit).dead_letter_ttl_ms)
  local old = unit.call('ZRANGEBYSCORE', key, '-inf', until_ms, 'LIMIT', 0, PRUNED)
  for _, id in ipairs(old) do
    unit.call('ZREM', key, id)
    record.erase_ended(unit, id, true)
  end
  return #old == PRUNED
end

-- Take the places out whose records are gone, of jobs that ended in a state, from `offset` on; return the next offset,
-- nil at the end.
function history.prune_places(unit, ended, offset)
  local key, kept = key_of(unit, ended), 0
  local ids = unit.call('ZRANGE', key, offset, offset + PRUNED - 1)
  for _, id in ipairs(ids) do
    local state = record.state(unit.call('HGET', keys.job(unit.root, id), 'head'))
    if record.is_terminal(state) and key_of(unit, state) == key then
      kept = kept + 1
    else
      unit.call('ZREM', key, id)
    end
  end
  return #ids == PRUNED and offset + kept or nil
end
