-- Write the outcomes of attempts, each only for the claim that owns it; atomic because the state, the
-- result and all that hangs on it must never part. Reply: ok, stale or gone (no
-- record is left) an outcome, a blank between two; or `unknown` for an unknown or condemned incarnation.
-- An outcome is id, epoch and nonce with a tab between, kind, run_ms, two numbers, body; then, unless the job is
-- completed, reason and error type.
local COMPLETED_WIDTH = 7
local WIDTH = 9

local NONE = { own = false }
local kinds = {}

function kinds.retried(q, record, a)
  record.attempts, record.more, record.run = record.attempts + 1, '+', a.run_ms
  job.remember_error(q, record, a.body)
  queue.tally(q, 'retried')
  queue.event(q, 'retrying', record.id, record.task, record.epoch, a.incarnation, '', a.run_ms, a.error_type)
  queue.leave(q, a.incarnation, record.id)
  job.delay(q, record, 'retrying', q.now + a.first, 'attempts', record.attempts)
end

function kinds.failed(q, record, a)
  -- Only a handler's own error is an attempt used; a payload that can't be read never reached it.
  if a.second == 1 then
    record.attempts, record.more = record.attempts + 1, '+'
    q.call('HSET', record.key, 'attempts', record.attempts)
  end
  finish.fail(q, record, a.reason, a.body, a.error_type, a.run_ms)
end

function kinds.cancelled(q, record, a)
  record.keep = a.keep
  finish.cancel(q, record, a.run_ms, a.reason)
end

function kinds.stalled(q, record, a)
  local all = job.load_waiting(q, record.id)
  all.owner = a.incarnation
  worker.stall(q, all, a.incarnation, a.body, a.error_type, a.run_ms)
end

function kinds.released(q, record, a)
  q.call('HSETNX', record.key, 'released', q.now_text)
  local first = job.digits(q.call('HGET', record.key, 'released'))
  if not first then
    q.call('HSET', record.key, 'released', q.now_text)
  elseif q.now - first > a.second then
    finish.fail(q, record, 'unknown_task', a.body, a.error_type, '')
    return
  end
  queue.leave(q, a.incarnation, record.id)
  record.run = ''
  job.delay(q, record, 'scheduled', q.now + a.first)
  queue.event(q, 'put_back', record.id, record.task, record.epoch, a.incarnation, '', '', '')
end

local WAITS = { retried = true, released = true }

-- What the jobs that one call claimed have in common.
local function shared(incarnation, own)
  local epoch, nonce = job.claim_parts(own)
  return {
    own = own,
    -- A claim is of no use to another incarnation: the job lies in its own one's processing set.
    is_ours = string.find(nonce, incarnation .. '/', 1, true) == 1,
    event = '\t' .. epoch .. '\t' .. incarnation .. '\t\t', head = '', completed = '',
    big = '', more = '', created = '', run = '', -- of the plain jobs among them
  }
end

-- Whether an active job has nothing beside its record, and nobody who waits. If so, note the head that it gets, short
-- of run_ms: jobs that came and were claimed together have both in common.
local function is_plain(q, claim, head)
  if head == claim.head then
    return true
  end
  local created = job.plain_active(head)
  if not created then
    return false
  end
  claim.head, claim.created = head, created
  claim.completed = job.head(q, claim, 'completed', '')
  return true
end

-- Return the verdict, and 1 where the caller is to count a completed job.
local function settle(q, incarnation, claim, args, at)
  local id, kind, run_ms = args[at], args[at + 2], args[at + 3]
  local key = keys.job(q.root, id)
  local v = q.try('HMGET', key, 'head', 'claim', 'task') -- of a key of another type this is an error, and all are nil
  if kind == 'completed' and claim.is_ours and v[2] == claim.own and v[3] and is_plain(q, claim, v[1]) then
    local result, keep_ms = args[at + 6], args[at + 5]
    if #result <= job.INLINE_LIMIT and keep_ms ~= '0' and args[at + 4] == keep_ms then
      finish.complete_plain(q, key, id, claim.completed .. run_ms, result, keep_ms)
      queue.leave(q, incarnation, id)
      queue.line(q, 'completed\t' .. id .. '\t' .. v[3] .. claim.event .. run_ms .. '\t')
      queue.observe(q, 'run:', run_ms)
      return 'ok', 1
    end
  end
  local record = job.record(q, id, key, v[1], v[2], v[3])
  if not record then
    if v[1] and q.call('SISMEMBER', keys.processing(q.root, incarnation), id) == 1 then
      finish.fail_headless(q, id, 'active', '', incarnation)
    end
    return 'gone'
  elseif not claim.is_ours or v[2] ~= claim.own then
    return 'stale'
  end
  record.owner = incarnation
  if record.state ~= 'active' then
    return job.is_terminal(record.state) and 'ok' or 'stale'
  end
  if record.stalls ~= 0 then
    queue.wake_all(q) -- another on its last chance may wait for this one's end
  end
  if run_ms ~= '' then
    queue.observe(q, 'run:', run_ms)
  end
  if kind == 'completed' then
    finish.complete(q, record, args[at + 6], args[at + 4], args[at + 5], run_ms)
    return 'ok'
  end
  local a = {
    incarnation = incarnation, run_ms = run_ms, first = tonumber(args[at + 4]),
    second = tonumber(args[at + 5]), keep = args[at + 5], body = args[at + 6],
    reason = args[at + 7], error_type = args[at + 8],
  }
  if record.cancel and WAITS[kind] then
    record.keep = job.load_waiting(q, record.id).keep
    finish.cancel(q, record, run_ms, '')
  else
    kinds[kind](q, record, a)
  end
  return 'ok'
end

function functions.settle(roots, args)
  local incarnation, number = unpack(args)
  local q = queue.open(roots[1])
  local last = worker.get(q, incarnation, 'settle')
  if not last then
    return 'unknown'
  end
  local key = keys.worker(q.root, incarnation)
  if number + 0 < job.number(last, 0) then
    return redis.error_reply('STALECALL ' .. number .. ' is older than ' .. last)
  elseif number == last then
    return q.call('HGET', key, 'settled') or 'unknown'
  end
  local verdicts, n, uncounted, at, claim = {}, 0, 0, 3, NONE
  while at <= #args do
    if args[at + 1] ~= claim.own then
      claim = shared(incarnation, args[at + 1])
    end
    n = n + 1
    local verdict, completed = settle(q, incarnation, claim, args, at)
    verdicts[n] = verdict
    uncounted = uncounted + (completed or 0)
    at = at + (args[at + 2] == 'completed' and COMPLETED_WIDTH or WIDTH)
  end
  if uncounted > 0 then
    queue.count(q, 'active', -uncounted)
    queue.tally(q, 'completed', uncounted)
  end
  local answer = table.concat(verdicts, ' ')
  q.raw('HSET', key, 'settle', number, 'settled', answer)
  queue.close(q)
  return answer
end
