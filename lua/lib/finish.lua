-- The terminal transitions: state, result, index, counters and the word to waiters in one step.
local MESSAGE_LIMIT, JOINED_MS = limits.MESSAGE_LIMIT_BYTES, limits.WAITED_RESULT_TTL_MS

-- root, id, state, reason, "whole" or "cut", then the body: a result, or the last error.
local function tell(q, record, state, reason, body)
  if not record.inbox then
    return
  end
  local how = 'whole'
  if #body > MESSAGE_LIMIT then
    how, body = 'cut', ''
  end
  local message = table.concat({ q.root, record.id, state, reason, how, body }, '\n')
  for channel in string.gmatch(record.inbox, '%S+') do
    queue.publish(q, channel, message)
  end
end

local function leave(q, record)
  if record.state == 'queued' then
    queue.count_ready(q, record.lane or job.lane(q, record.id), -1)
  else
    queue.count(q, record.state, -1)
  end
  if job.is_delayed(record.state) then
    q.call('ZREM', keys.delayed(q.root), job.member(record.id, record.created, record.generation))
  elseif record.state == 'active' then
    local owner = job.owner(record)
    queue.leave(q, owner, record.id)
    if record.cancel then
      q.call('SREM', keys.cancels(q.root, owner), record.id)
    end
  end
end

-- How long to keep what a second `enqueue_and_wait` has joined: a minute at least, whatever the first caller asked for.
local function for_waiters(q, record, ms)
  if record.inbox and tonumber(ms) < JOINED_MS and q.call('HGET', record.key, 'joined') then
    return queue.text(JOINED_MS)
  end
  return ms
end

local function keep(q, record, state, keep_ms, list, ...)
  if keep_ms == '0' then
    job.erase(q, record.id)
    return
  end
  q.call('HSET', record.key, 'head', job.head(q, record, state, ''), ...)
  job.expire(q, record, keep_ms)
  list[#list + 1] = q.now_text
  list[#list + 1] = record.id
end

-- The times are text: to turn numbers into text costs 0.3 µs each.
function finish.complete(q, record, result, result_ttl_ms, keep_ms, run_ms)
  leave(q, record)
  record.run = run_ms
  result_ttl_ms, keep_ms = for_waiters(q, record, result_ttl_ms), for_waiters(q, record, keep_ms)
  if result_ttl_ms ~= keep_ms and tonumber(result_ttl_ms) > tonumber(keep_ms) then
    result_ttl_ms = keep_ms -- a result that outlived its record would pass for the next job's with that id
  end
  local is_kept = keep_ms ~= '0' and result_ttl_ms ~= '0'
  if is_kept and (#result > job.INLINE_LIMIT or result_ttl_ms ~= keep_ms) then
    q.call('SET', keys.result(q.root, record.id), result, 'PX', result_ttl_ms)
    keep(q, record, 'completed', keep_ms, q.finished)
  elseif is_kept then
    keep(q, record, 'completed', keep_ms, q.finished, 'result', result)
  else
    if keep_ms ~= '0' then
      q.call('UNLINK', keys.result(q.root, record.id)) -- that of a lost record would pass for this one's
    end
    keep(q, record, 'completed', keep_ms, q.finished)
  end
  queue.tally(q, 'completed')
  queue.event(q, 'completed', record.id, record.task, record.epoch, job.owner(record), '', run_ms, '')
  tell(q, record, 'completed', '', result)
end

-- The same for a job that has nothing beside its record, and nobody who waits: what most jobs are, and it saves
-- 20,000 instructions. `head` is all of the new one; the caller counts.
function finish.complete_plain(q, key, id, head, result, keep_ms)
  q.raw('HSET', key, 'head', head, 'result', result)
  q.raw('PEXPIRE', key, keep_ms)
  local n = #q.finished
  q.finished[n + 1], q.finished[n + 2] = q.now_text, id
end

-- error: text of the client, or ''.
function finish.fail(q, record, reason, error, error_type, run_ms)
  leave(q, record)
  record.run = run_ms
  if error ~= '' then
    job.remember_error(q, record, error)
  end
  local ttl_ms = queue.config(q).dead_ttl_ms
  keep(q, record, 'failed', ttl_ms, q.dead, 'reason', reason, 'error', error_type)
  q.call('PEXPIRE', keys.errors(q.root, record.id), ttl_ms)
  queue.tally(q, 'failed')
  queue.event(q, 'failed', record.id, record.task, record.epoch, job.owner(record), '', run_ms, reason)
  tell(q, record, 'failed', reason, error)
end

local DAMAGED = '{"type":"DamagedRecord","message":"a field of its record can\'t be read"}'

-- End a job whose record has rubbish in a field, so that it is in nobody's way.
function finish.fail_damaged(q, record)
  damage.note(q.root, 'job')
  finish.fail(q, record, 'undecodable', DAMAGED, 'DamagedRecord', '')
end

-- The same for one that has no head to be read, where a job of that state was to be found. Without a record it does
-- nothing.
function finish.fail_headless(q, id, state, lane, owner)
  local key = keys.job(q.root, id)
  local v = q.call('HMGET', key, 'head', 'claim', 'task', 'cancel', 'inbox')
  if v[1] and not job.parts(v[1]) then
    local epoch, nonce = job.claim_parts(v[2])
    finish.fail_damaged(q, {
      key = key, id = id, state = state, big = '*', more = '+', generation = '', at = '', created = q.now_text,
      run = '', epoch = epoch, claim = nonce, task = v[3] or '', attempts = 0, stalls = 1, cancel = v[4],
      inbox = v[5], owner = owner, lane = lane,
    })
  end
end

-- reason: 'could_not_stop' where the handler goes on, else ''.
function finish.cancel(q, record, run_ms, reason)
  leave(q, record)
  record.run = run_ms
  if reason ~= '' then
    q.call('HSET', record.key, 'reason', reason)
  end
  keep(q, record, 'cancelled', for_waiters(q, record, record.keep), q.finished)
  queue.tally(q, 'cancelled')
  queue.event(q, 'cancelled', record.id, record.task, record.epoch, job.owner(record), '', run_ms, reason)
  tell(q, record, 'cancelled', reason, '')
end

-- A job that ends because nobody wants it any more: purged.
function finish.delete(q, record)
  if not job.is_terminal(record.state) then
    leave(q, record)
    tell(q, record, 'deleted', '', '')
  end
  job.erase(q, record.id)
end
