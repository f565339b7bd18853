-- What becomes of an active job by the outcome of its attempt. `at` is where the outcome begins in the arguments of
-- `settle`, which says what each is.

function outcomes.completed(unit, job, args, at)
  finish.complete(unit, job, args[at + 6], args[at + 4], args[at + 5], args[at + 3])
end

function outcomes.retried(unit, job, args, at)
  local due_ms, error, words = unit.now_ms + tonumber(args[at + 4]), args[at + 6], args[at + 8]
  job.failures, job.run_ms = job.failures + 1, args[at + 3]
  record.with_more(job)
  record.remember_error(unit, job, error)
  stats.tally(unit, 'retried')
  local detail = words .. '\t' .. numbers.text(due_ms)
  attempts.wait(unit, job, 'delayed', 'retrying', job.run_ms, detail, 'retrying', due_ms, 'failures', job.failures)
end

function outcomes.snoozed(unit, job, args, at)
  local due_ms, reason = unit.now_ms + tonumber(args[at + 4]), args[at + 7]
  job.run_ms = args[at + 3]
  unit.call('HDEL', job.key, 'put_back') -- a worker has run it
  local detail = reason .. '\t' .. numbers.text(due_ms)
  attempts.wait(unit, job, 'delayed', 'snoozed', job.run_ms, detail, 'scheduled', due_ms)
end

function outcomes.failed(unit, job, args, at)
  -- Only a handler's own error is an attempt used; a payload that can't be read never reached it.
  if args[at + 5] == '1' then
    job.failures = job.failures + 1
    record.with_more(job)
    unit.call('HSET', job.key, 'failures', job.failures)
  end
  finish.fail(unit, job, args[at + 7], args[at + 6], args[at + 8], args[at + 3])
end

function outcomes.cancelled(unit, job, args, at)
  job.keep_ms = args[at + 5]
  finish.cancel(unit, job, args[at + 3], args[at + 7])
end

function outcomes.stalled(unit, job, args, at)
  attempts.stall(unit, record.load_waiting(unit, job.id), args[at + 6], args[at + 8], args[at + 3])
end

function outcomes.put_back(unit, job, args, at)
  local due_ms, limit_ms = unit.now_ms + tonumber(args[at + 4]), tonumber(args[at + 5])
  local error, reason, words = args[at + 6], args[at + 7], args[at + 8]
  local first_ms = record.put_back(unit.call('HGET', job.key, 'put_back'), job.failures + job.stalls)
  if first_ms and unit.now_ms - first_ms > limit_ms then
    finish.fail(unit, job, reason, error, words, '')
    return
  end
  job.run_ms = ''
  attempts.wait(
    unit, job, 'delayed', 'put_back', '', reason .. '\t' .. numbers.text(due_ms), 'scheduled', due_ms,
    'put_back', record.put_back_note(job, first_ms or unit.now_text, error, record.error_type(words))
  )
end

function outcomes.struck(unit, job, args, at)
  attempts.lay_aside(unit, record.load_waiting(unit, job.id), args[at + 7])
end
