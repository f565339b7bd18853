-- Give jobs back the place that their records say they have, where it was lost behind our back; a record that is gone
-- loses what lies beside it. With each id come the generations of its ready entries that the caller has seen in a walk
-- that began at a time: a job that was queued before it, and has none of them, has no entry. Reply: how many were put
-- right.
local function restore_active(q, record)
  local owner = job.owner(record)
  if not q.call('HGET', keys.beats(q.root), owner) then
    worker.send_back(q, record, q.heads)
    return 1
  end
  local n = q.call('SADD', keys.processing(q.root, owner), record.id)
  if record.cancel then
    q.call('SADD', keys.cancels(q.root, owner), record.id)
  end
  return n
end

local function restore_delayed(q, record)
  local member = job.member(record.id, record.created, record.generation)
  if q.call('ZSCORE', keys.delayed(q.root), member) then
    return 0
  end
  job.wait_until(q, record.id, member, q.now) -- when it was due is lost
  return 1
end

local function restore_queued(q, record, since, generations)
  local at = tonumber(record.at ~= '' and record.at or record.created)
  if at >= since or string.find(' ' .. generations .. ' ', ' ' .. record.generation .. ' ', 1, true) then
    return 0
  end
  job.make_ready(q, record, q.tails)
  return 1
end

local function restore(q, id, since, generations)
  local record = job.load_waiting(q, id)
  if not record then
    return job.erase_lost(q, id) > 0 and 1 or 0
  elseif record.state == 'active' then
    return restore_active(q, record)
  elseif job.is_delayed(record.state) then
    return restore_delayed(q, record)
  elseif record.state == 'queued' then
    return restore_queued(q, record, since, generations)
  end
  return 0
end

function functions.restore(roots, args)
  local q = queue.open(roots[1])
  local n, since = 0, tonumber(args[1])
  for at = 2, #args, 2 do
    n = n + restore(q, args[at], since, args[at + 1])
  end
  queue.close(q)
  return n
end
