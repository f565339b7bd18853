-- Aging: of so many jobs that the claims of a queue take one is of a lower tier than the best that waits, of that whose
-- head has waited longest. A queue that does not ask for it knows nothing of it.
local LOOKS = limits.CLAIM_LOOKS

-- What a claim has to know; nil of a queue whose tiers are strict. `taken` counts the jobs since the last of a lower
-- tier, by all claims.
function aging.open(unit)
  local every = settings.of(unit).aging
  if every == 0 then
    return nil
  end
  local taken = numbers.read(unit.call('HGET', keys.counts(unit.root), 'aged'), 0)
  return { every = every, taken = math.min(every - 1, taken), before = taken }
end

-- Since when the head of a line waits, nil of an empty one. What is left over at the head is dropped.
local function since_ms_of(unit, line)
  for _ = 1, LOOKS do
    local entry = entries.of(unit, line, 0, 1)[1]
    local generation, id = string.match(entry or '', '^(%d+):(.*)$')
    local state, _, _, its, at_ms, created_ms = record.parts(id and unit.call('HGET', keys.job(unit.root, id), 'head'))
    if not entry then
      return nil
    elseif not state or (state == 'queued' and its == generation) then
      return tonumber(at_ms and at_ms ~= '' and at_ms or created_ms or 0) -- rubbish is the first to be looked at
    end
    entries.pop_line(unit, line, '1')
  end
  return 0
end

-- Take the entry of a lane that is due by its age, as entries.pop does; nil where none is.
function aging.pop(unit, its, lane)
  if its.taken < its.every - 1 then
    return nil
  end
  local has_best, oldest, oldest_ms = false, nil, nil
  for tier = 9, 0, -1 do
    local line = lane .. ':' .. tier
    local since_ms = since_ms_of(unit, line)
    if since_ms and not has_best then
      has_best = true
    elseif since_ms and (not oldest or since_ms < oldest_ms) then
      oldest, oldest_ms = line, since_ms
    end
  end
  if oldest then
    return entries.pop_line(unit, oldest, '1')
  end
end

-- How many of so many entries may be taken from the best tier before one is due.
function aging.most(its, n)
  return its.taken < its.every - 1 and math.min(n, its.every - 1 - its.taken) or n
end

-- Note how many jobs were taken, and whether that was by their age.
function aging.note(its, n, is_aged)
  if not is_aged then
    its.taken = math.min(its.every - 1, its.taken + n)
  elseif n > 0 then
    its.taken = 0
  end
end

function aging.close(unit, its)
  if its.taken ~= its.before then
    unit.call('HSET', keys.counts(unit.root), 'aged', numbers.text(its.taken))
  end
end
