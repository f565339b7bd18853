-- Write the outcomes of attempts, each only for the claim that owns it; atomic because the state, the
-- result and all that hangs on it must never part. Reply: ok, stale or gone (no
-- record is left) an outcome, a blank between two; or `unknown` for an unknown or condemned incarnation.
-- An outcome is id, epoch and nonce with a tab between, kind, run_ms, two numbers, body; then, unless the job is
-- completed, reason and error type.
local COMPLETED_WIDTH, WIDTH = 7, 9

local NONE = { own = false }
local kinds = {}

function kinds.completed(unit, job, args, at)
  finish.complete(unit, job, args[at + 6], args[at + 4], args[at + 5], args[at + 3])
end

function kinds.retried(unit, job, args, at)
  local due_ms, error, error_type = unit.now_ms + tonumber(args[at + 4]), args[at + 6], args[at + 8]
  job.attempts, job.run_ms = job.attempts + 1, args[at + 3]
  record.with_more(job)
  record.remember_error(unit, job, error)
  stats.tally(unit, 'retried')
  moves.move(
    unit, job, 'delayed', 'retrying', job.run_ms, error_type, 'retrying', due_ms, 'attempts', job.attempts
  )
end

function kinds.failed(unit, job, args, at)
  -- Only a handler's own error is an attempt used; a payload that can't be read never reached it.
  if args[at + 5] == '1' then
    job.attempts = job.attempts + 1
    record.with_more(job)
    unit.call('HSET', job.key, 'attempts', job.attempts)
  end
  finish.fail(unit, job, args[at + 7], args[at + 6], args[at + 8], args[at + 3])
end

function kinds.cancelled(unit, job, args, at)
  job.keep_ms = args[at + 5]
  finish.cancel(unit, job, args[at + 3], args[at + 7])
end

function kinds.stalled(unit, job, args, at)
  attempts.stall(unit, record.load_waiting(unit, job.id), args[at + 6], args[at + 8], args[at + 3])
end

function kinds.put_back(unit, job, args, at)
  local limit_ms = tonumber(args[at + 5])
  unit.call('HSETNX', job.key, 'put_back_at_ms', unit.now_text)
  local first_ms = numbers.digits(unit.call('HGET', job.key, 'put_back_at_ms'))
  if not first_ms then
    unit.call('HSET', job.key, 'put_back_at_ms', unit.now_text)
  elseif unit.now_ms - first_ms > limit_ms then
    finish.fail(unit, job, 'unknown_task', args[at + 6], args[at + 8], '')
    return
  end
  job.run_ms = ''
  moves.move(unit, job, 'delayed', 'put_back', '', '', 'scheduled', unit.now_ms + tonumber(args[at + 4]))
end

local WAITS = { retried = true, put_back = true }

-- What the jobs that one call claimed have in common.
local function shared(incarnation, own)
  local ends = plain.ends(own, incarnation)
  -- A claim is of no use to another incarnation: the job lies in its own one's processing set.
  local _, nonce = record.claim_parts(own)
  ends.is_ours = string.find(nonce, incarnation .. '/', 1, true) == 1
  return ends
end

-- The general way: return the verdict.
local function settle(unit, job, args, at)
  local kind, run_ms = args[at + 2], args[at + 3]
  if job.state ~= 'active' then
    return record.is_terminal(job.state) and 'ok' or 'stale'
  end
  if job.stalls ~= 0 then
    wake.all(unit) -- another on its last chance may wait for this one's end
  end
  if run_ms ~= '' then
    stats.observe(unit, 'run:', run_ms)
  end
  if job.cancel and WAITS[kind] then
    job.keep_ms = record.load_waiting(unit, job.id).keep_ms
    finish.cancel(unit, job, run_ms, '')
  else
    kinds[kind](unit, job, args, at)
  end
  return 'ok'
end

-- Return the verdict on one outcome, and 1 where the caller is to count a completed job.
local function settle_one(unit, ends, args, at)
  local id = args[at]
  local key = keys.job(unit.root, id)
  -- Of a key of another type this is an error, and all are nil.
  local v = unit.try('HMGET', key, 'head', 'claim', 'task')
  local is_owned = ends.is_ours and v[2] == ends.own
  if args[at + 2] == 'completed' and is_owned and v[3]
    and plain.complete(unit, ends, key, id, v[3], v[1], args[at + 6], args[at + 4], args[at + 5], args[at + 3]) then
    return 'ok', 1
  end
  local job = record.read(unit, id, key, v[1], v[2], v[3])
  if not job then
    if v[1] and unit.call('SISMEMBER', keys.processing(unit.root, ends.incarnation), id) == 1 then
      finish.fail_headless(unit, id, 'active', '', ends.incarnation)
    end
    return 'gone'
  elseif not is_owned then
    return 'stale'
  end
  return settle(unit, job, args, at)
end

local function settle_all(unit, incarnation, args, at)
  local verdicts, n, uncounted, ends = {}, 0, 0, NONE
  while at <= #args do
    if args[at + 1] ~= ends.own then
      ends = shared(incarnation, args[at + 1])
    end
    n = n + 1
    local verdict, completed = settle_one(unit, ends, args, at)
    verdicts[n] = verdict
    uncounted = uncounted + (completed or 0)
    at = at + (args[at + 2] == 'completed' and COMPLETED_WIDTH or WIDTH)
  end
  if uncounted > 0 then
    moves.count_completed(unit, uncounted)
  end
  return verdicts
end

function functions.settle(roots, args)
  local incarnation, number = unpack(args)
  local unit = unit.open(roots[1])
  local last = incarnations.get(unit, incarnation, 'settle')
  if not last then
    return 'unknown'
  end
  local key = keys.worker(unit.root, incarnation)
  if number + 0 < numbers.read(last, 0) then
    return redis.error_reply('STALECALL ' .. number .. ' is older than ' .. last)
  elseif number == last then
    return unit.call('HGET', key, 'settled') or 'unknown'
  end
  local answer = table.concat(settle_all(unit, incarnation, args, 3), ' ')
  unit.raw('HSET', key, 'settle', number, 'settled', answer)
  unit:close()
  return answer
end
