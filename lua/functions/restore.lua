-- Give jobs back the place that their records say they have, where it was lost behind our back; a record that is gone
-- loses what lies beside it. With each id come the generations of its ready entries that the caller has seen in a walk
-- that began at a time: a job that was queued before it, and has none of them, has no entry. Reply: how many were put
-- right.
local function restore_active(unit, job)
  local owner = record.owner(job)
  if not unit.call('HGET', keys.beats(unit.root), owner) then
    attempts.put_back(unit, job)
    return 1
  end
  local n = unit.call('SADD', keys.processing(unit.root, owner), job.id)
  if job.cancel then
    unit.call('SADD', keys.cancels(unit.root, owner), job.id)
  end
  return n
end

local function restore_delayed(unit, job)
  local member = record.member(job.id, job.created_ms, job.generation)
  if unit.call('ZSCORE', keys.delayed(unit.root), member) then
    return 0
  end
  moves.wait_until(unit, job, unit.now_ms) -- when it was due is lost
  return 1
end

local function restore_queued(unit, job, since_ms, generations)
  local at_ms = tonumber(job.at_ms ~= '' and job.at_ms or job.created_ms)
  if at_ms >= since_ms or string.find(' ' .. generations .. ' ', ' ' .. job.generation .. ' ', 1, true) then
    return 0
  end
  moves.move(unit, job, 'ready', nil, '', '', 'tails')
  return 1
end

local function restore(unit, id, since_ms, generations)
  local job = record.load_waiting(unit, id)
  if not job then
    return record.erase_lost(unit, id) > 0 and 1 or 0
  elseif job.state == 'active' then
    return restore_active(unit, job)
  elseif record.is_delayed(job.state) then
    return restore_delayed(unit, job)
  elseif job.state == 'queued' then
    return restore_queued(unit, job, since_ms, generations)
  elseif job.state == 'blocked' then
    local _, was_wrong = lines.mend(unit, id)
    return was_wrong and 1 or 0
  end
  return 0
end

function functions.restore(roots, args)
  local unit = unit.open(roots[1])
  local n, since_ms = 0, tonumber(args[1])
  for at = 2, #args, 2 do
    n = n + restore(unit, args[at], since_ms, args[at + 1]) + successors.restore(unit, args[at])
  end
  lines.close(unit)
  return n
end
