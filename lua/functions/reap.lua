-- Condemn an incarnation whose beat has not moved since the caller looked, and take its jobs back;
-- atomic because a beat in between must win. Reply: moved, or how many jobs are left.
local BATCH = limits.REAPED_A_CALL

local function take_back(q, incarnation, id, error)
  local record = job.load_waiting(q, id)
  if not record then
    finish.fail_headless(q, id, 'active', '', incarnation)
  end
  local processing = keys.processing(q.root, incarnation)
  if not (record and record.state == 'active' and job.owner(record) == incarnation) then
    q.call('SREM', processing, id)
    if not record then
      job.erase(q, id)
    end
    return
  end
  worker.stall(q, record, incarnation, error, 'WorkerDied', '')
end

function functions.reap(roots, args)
  local incarnation, seen, error = unpack(args)
  local q = queue.open(roots[1])
  local beats = keys.beats(q.root)
  local beat = q.call('HGET', beats, incarnation)
  local count, lease, at = worker.beat(beat)
  if not beat or (count ~= '-1' and count ~= seen) then
    return 'moved'
  end
  local processing = keys.processing(q.root, incarnation)
  local ids = q.call('SRANDMEMBER', processing, BATCH)
  -- Condemned for good: every later call of it answers gone.
  q.call('HSET', beats, incarnation, '-1 ' .. lease .. ' ' .. at)
  q.call('UNLINK', keys.worker(q.root, incarnation))
  for _, id in ipairs(ids) do
    take_back(q, incarnation, id, error)
  end
  queue.wake_all(q)
  queue.close(q)
  return queue.text(q.call('SCARD', processing))
end
