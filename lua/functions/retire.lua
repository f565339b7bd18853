-- Hand back what an incarnation still has and forget it; atomic so that no job is left with nobody.
-- Reply: how many jobs are left for another call; 0: it is forgotten.
local BATCH = limits.RETIRED_A_CALL

function functions.retire(roots, args)
  local incarnation = unpack(args)
  local q = queue.open(roots[1])
  local processing = keys.processing(q.root, incarnation)
  local ids = q.call('SRANDMEMBER', processing, BATCH)
  for _, id in ipairs(ids) do
    local record = job.load_waiting(q, id)
    if record and record.state == 'active' and job.owner(record) == incarnation then
      worker.send_back(q, record, q.heads)
    else
      if not record then
        finish.fail_headless(q, id, 'active', '', incarnation)
      end
      q.call('SREM', processing, id)
      if not record then
        job.erase(q, id)
      end
    end
  end
  -- A token that ends with it must not leave jobs unseen.
  queue.wake_all(q)
  queue.close(q)
  local left = q.call('SCARD', processing)
  if left == 0 then
    worker.delete(q, incarnation)
    q.call('HDEL', keys.beats(q.root), incarnation)
  end
  return left
end
