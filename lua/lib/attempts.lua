-- What becomes of an active job whose attempt brought no outcome of its own.

-- Let it wait again, as `moves.move` does; a successor changes it, and is gone.
function attempts.wait(unit, job, ...)
  moves.move(unit, job, ...)
  if job.has_next then
    successors.apply(unit, job.id)
  end
end

-- Return it to wait, free of charge, or end it if it was asked to stop.
function attempts.put_back(unit, job)
  if job.cancel then
    finish.cancel(unit, job, '', '')
  else
    attempts.wait(unit, job, 'ready', 'put_back', '', '', 'heads')
  end
end

-- Have it wait in the line of a strike, free of charge, before all others; if that stands no more, put it back.
function attempts.lay_aside(unit, job, strike)
  if not strikes.stands(unit, strike) then
    attempts.put_back(unit, job)
    return
  end
  moves.park(unit, job, strike, entries.front(unit))
  if job.has_next then
    successors.apply(unit, job.id)
  end
end

-- Charge it with the death of what ran it: it waits at the head again, or ends. `error` and
-- `words` are of the client, `run_ms` '' where that is not known.
function attempts.stall(unit, job, error, words, run_ms)
  job.stalls = job.stalls + 1
  record.with_more(job)
  unit.call('HSET', job.key, 'stalls', job.stalls)
  stats.tally(unit, 'stalled')
  events.add(unit, 'stalled', job.id, job.task, events.tail(job.epoch, record.owner(job), '', run_ms, words))
  if job.cancel then
    finish.cancel(unit, job, run_ms, '')
  elseif job.stalls >= job.max_stalls then
    finish.fail(unit, job, 'stalled', error, words, run_ms)
  else
    record.remember_error(unit, job, error)
    attempts.wait(unit, job, 'ready', nil, '', '', 'heads')
  end
end

-- The active job that an id of an incarnation's stands for; nil of one that stands for none, and then it is not its own
-- any more, nor is there anything beside a record that was lost.
function attempts.of(unit, incarnation, id)
  local job = record.load_waiting(unit, id)
  if job and job.state == 'active' and record.owner(job) == incarnation then
    return job
  elseif not job then
    finish.fail_headless(unit, id, 'active', '', incarnation)
    record.erase_lost(unit, id)
  end
  moves.disown(unit, incarnation, id)
  return nil
end
