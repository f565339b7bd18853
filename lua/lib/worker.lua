-- Incarnations: who may claim, and what a dead one leaves behind.
worker.DEFAULT_LEASE = '' .. limits.DEFAULT_LEASE_MS

-- A field of an incarnation, false when it is unknown or condemned: its lease, or the last number of its calls.
function worker.get(q, incarnation, field)
  local value = q.try('HGET', keys.worker(q.root, incarnation), field)
  return value and not value.err and value
end

-- Send one job of an incarnation back to wait, or end it if it was asked to stop.
function worker.send_back(q, record, lists)
  if record.cancel then
    finish.cancel(q, record, '', '')
    return
  end
  queue.leave(q, job.owner(record), record.id)
  job.make_ready(q, record, lists)
  queue.event(q, 'put_back', record.id, record.task, record.epoch, job.owner(record), '', '', '')
end

-- Charge an active job with the death of what ran it: it waits at the head again, or ends. `error` is text of the
-- client, `run_ms` '' where that is not known.
function worker.stall(q, record, incarnation, error, error_type, run_ms)
  record.stalls, record.more = record.stalls + 1, '+'
  q.call('HSET', record.key, 'stalls', record.stalls)
  queue.tally(q, 'stalled')
  queue.event(q, 'stalled', record.id, record.task, record.epoch, incarnation, '', run_ms, error_type)
  if record.cancel then
    finish.cancel(q, record, run_ms, '')
  elseif record.stalls >= record.max_stalls then
    finish.fail(q, record, 'stalled', error, error_type, run_ms)
  else
    job.remember_error(q, record, error)
    queue.leave(q, incarnation, record.id)
    job.make_ready(q, record, q.heads)
  end
end

function worker.delete(q, incarnation)
  local root = q.root
  q.call(
    'UNLINK', keys.worker(q.root, incarnation), keys.processing(root, incarnation), keys.cancels(root, incarnation)
  )
end

-- How long ago a beat came. Its value is the count (-1: condemned), the lease and the server's time.
function worker.silent_ms(q, beat)
  local _, _, at = worker.beat(beat)
  return math.max(0, q.now - job.number(at, 0)) -- the clock may have been set back
end

-- The count of a beat, its lease and its time; of rubbish those of an incarnation that never beat.
function worker.beat(beat)
  local count, lease, at = string.match(beat or '', '^(%-?%d+) (%d+) (%d+)$')
  return count or '0', lease or worker.DEFAULT_LEASE, at or '0'
end
