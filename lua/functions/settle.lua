-- Write the outcomes of attempts, each only for the claim that owns it; atomic because the state, the
-- result and all that hangs on it must never part. Reply: ok, stale or gone (no
-- record is left) an outcome; or `unknown` for an unknown or condemned incarnation.
local WIDTH = 10 -- id, epoch, nonce, kind, run_ms, two numbers, reason, body, error type

local kinds = {}

function kinds.retried(q, record, a)
  record.attempts = record.attempts + 1
  job.remember_error(q, record.id, record.epoch, a.body)
  queue.tally(q, 'retried')
  queue.event(q, 'retrying', record.id, record.task, record.epoch, a.incarnation, '', a.run_ms, a.error_type)
  queue.leave(q, a.incarnation, record.id)
  job.delay(q, record, 'retrying', q.now + a.first, 'attempts', record.attempts, 'run', a.run_ms)
end

function kinds.failed(q, record, a)
  -- Only a handler's own error is an attempt used; a payload that can't be read never reached it.
  if a.second == 1 then
    record.attempts = record.attempts + 1
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
  if q.now - q.call('HGET', record.key, 'released') > a.second then
    finish.fail(q, record, 'unknown_task', a.body, a.error_type, '')
    return
  end
  queue.leave(q, a.incarnation, record.id)
  job.delay(q, record, 'scheduled', q.now + a.first, 'run', '')
  queue.event(q, 'put_back', record.id, record.task, record.epoch, a.incarnation, '', '', '')
end

local WAITS = { retried = true, released = true }

local function settle(q, incarnation, args, at)
  local record = job.load(q, args[at])
  if not record then
    return 'gone'
  end
  if record.claim ~= args[at + 2] or record.epoch ~= args[at + 1] then
    return 'stale'
  end
  -- A claim is of no use to another incarnation: the job lies in its own one's processing set.
  -- One nonce is shared by all that a call claimed, so this is looked at once a batch.
  if record.claim ~= q.own_nonce then
    if string.find(record.claim, incarnation .. '/', 1, true) ~= 1 then
      return 'stale'
    end
    q.own_nonce = record.claim
  end
  record.owner = incarnation
  if record.state ~= 'active' then
    return job.is_terminal(record.state) and 'ok' or 'stale'
  end
  if record.stalls ~= 0 then
    queue.wake_all(q) -- another on its last chance may wait for this one's end
  end
  local kind, run_ms = args[at + 3], args[at + 4]
  if run_ms ~= '' then
    queue.observe(q, 'run:', tonumber(run_ms))
  end
  if kind == 'completed' then
    finish.complete(q, record, args[at + 8], args[at + 5], args[at + 6], run_ms)
    return 'ok'
  end
  local a = {
    incarnation = incarnation, run_ms = run_ms, first = tonumber(args[at + 5]),
    second = tonumber(args[at + 6]), keep = args[at + 6], reason = args[at + 7],
    body = args[at + 8], error_type = args[at + 9],
  }
  if record.cancel and WAITS[kind] then
    record.keep = job.load_waiting(q, record.id).keep
    finish.cancel(q, record, run_ms, '')
  else
    kinds[kind](q, record, a)
  end
  return 'ok'
end

function functions.settle(keys, args)
  local incarnation, number = unpack(args)
  local q = queue.open(keys[1])
  local me = worker.load(q, incarnation)
  if not me then
    return { 'unknown' }
  end
  local key = worker.key(q, incarnation)
  if number + 0 < me.settle then
    return redis.error_reply('STALECALL ' .. number .. ' is older than ' .. me.settle)
  elseif number + 0 == me.settle then
    return cmsgpack.unpack(q.call('HGET', key, 'settled'))
  end
  local verdicts = {}
  for at = 3, #args, WIDTH do
    verdicts[#verdicts + 1] = settle(q, incarnation, args, at)
  end
  q.call('HSET', key, 'settle', number, 'settled', cmsgpack.pack(verdicts))
  queue.close(q)
  return verdicts
end
