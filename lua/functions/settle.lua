-- Write the outcomes of attempts, each only for the claim that owns it; atomic because the state, the
-- result and all that hangs on it must never part. Reply: ok, stale or gone (no
-- record is left) an outcome, a blank between two; or `unknown` for an unknown or condemned incarnation.
-- An outcome is id, epoch and nonce with a tab between, kind, run_ms, two numbers, body; then, unless the job is
-- completed, reason and the words of an error: type, message and frame with a tab between, '' for none.
local COMPLETED_WIDTH, WIDTH = 7, 9

local NONE = { own = false }
local ALL_FIELDS = record.with_few({ 'head', 'claim', 'task' })
local WAITS = { retried = true, snoozed = true, put_back = true, struck = true }

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
    outcomes[kind](unit, job, args, at)
  end
  return 'ok'
end

-- Return the head, claim and task of a job. Jobs that were claimed together are often alike: behind one that had fields
-- which few have, those are read in the same go, and returned, too.
local function read(unit, ends, key)
  -- Of a key of another type this is an error, and all are nil.
  if ends.has_more then
    local v = unit.try('HMGET', key, unpack(ALL_FIELDS))
    return v[7], v[8], v[9], v
  end
  local v = unit.try('HMGET', key, 'head', 'claim', 'task')
  return v[1], v[2], v[3]
end

-- Return the verdict on one outcome, and whether the caller is to let go of a plain job that is completed.
local function settle_one(unit, ends, args, at)
  local id = args[at]
  local key = keys.job(unit.root, id)
  local head, claim, task, known = read(unit, ends, key)
  local is_owned = ends.is_ours and claim == ends.own
  if args[at + 2] == 'completed' and is_owned and task
    and plain.complete(unit, ends, key, id, task, head, args[at + 6], args[at + 4], args[at + 5], args[at + 3]) then
    ends.has_more = false
    return 'ok', true
  end
  local job = record.read(unit, id, key, head, claim, task, nil, known)
  ends.has_more = job ~= nil and job.more ~= ''
  if not job then
    if head and unit.call('SISMEMBER', keys.processing(unit.root, ends.incarnation), id) == 1 then
      finish.fail_headless(unit, id, 'active', '', ends.incarnation)
    end
    return 'gone'
  elseif not is_owned then
    return 'stale'
  end
  return settle(unit, job, args, at)
end

local function settle_all(unit, incarnation, args, at)
  local verdicts, n, completed, done, ends = {}, 0, {}, 0, NONE
  while at <= #args do
    if args[at + 1] ~= ends.own then
      ends = shared(incarnation, args[at + 1])
    end
    n = n + 1
    local verdict, is_plain = settle_one(unit, ends, args, at)
    verdicts[n] = verdict
    if is_plain then
      done = done + 1
      completed[done] = args[at]
    end
    at = at + (args[at + 2] == 'completed' and COMPLETED_WIDTH or WIDTH)
  end
  if done > 0 then
    moves.complete(unit, incarnation, completed)
  end
  return verdicts
end

function functions.settle(roots, args)
  local incarnation, number = unpack(args)
  local unit = unit.open(roots[1])
  local last = incarnations.get(unit, incarnation, 'settle_number')
  if not last then
    return 'unknown'
  end
  local key = keys.worker(unit.root, incarnation)
  if number + 0 < numbers.read(last, 0) then
    return redis.error_reply('STALECALL call ' .. number .. ' is older than ' .. last)
  elseif number == last then
    return unit.call('HGET', key, 'settled') or 'unknown'
  end
  local answer = table.concat(settle_all(unit, incarnation, args, 3), ' ')
  unit.raw('HSET', key, 'settle_number', number, 'settled', answer)
  local close = unit.gates and lines.close or unit.close -- who met no gate pays nothing for them
  close(unit)
  return answer
end
