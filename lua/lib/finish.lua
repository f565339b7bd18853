-- How jobs end: what is kept of each, and the word to waiters.
local MESSAGE_LIMIT, JOINED_MS = limits.MESSAGE_LIMIT_BYTES, limits.WAITED_RESULT_TTL_MS
local NO_ERROR = '\t\t'

-- root, id, state, reason, "whole" or "cut", then the body: a result, or the last error.
local function notify(unit, job, state, reason, body)
  if not job.channels then
    return
  end
  local how = 'whole'
  if #body > MESSAGE_LIMIT then
    how, body = 'cut', ''
  end
  local message = table.concat({ unit.root, job.id, state, reason, how, body }, '\n')
  for channel in string.gmatch(job.channels, '%S+') do
    wake.publish(unit, channel, message)
  end
end

-- What makes room for its successor is not kept, and that comes in.
local function keep_for(job, ms)
  return job.has_next and '0' or ms
end

local function follow(unit, job)
  if job.has_next then
    successors.enter(unit, job.id)
  end
end

-- How long to keep what a second `enqueue_and_wait` has joined: a minute at least, whatever the first caller asked for.
local function for_waiters(unit, job, ms)
  if job.channels and tonumber(ms) < JOINED_MS and unit.call('HGET', job.key, 'joined') then
    return numbers.text(JOINED_MS)
  end
  return ms
end

-- The times are text: to turn numbers into text costs 0.3 us each.
function finish.complete(unit, job, result, result_ttl_ms, keep_ms, run_ms)
  job.run_ms = run_ms
  result_ttl_ms, keep_ms = for_waiters(unit, job, result_ttl_ms), keep_for(job, for_waiters(unit, job, keep_ms))
  if result_ttl_ms ~= keep_ms and tonumber(result_ttl_ms) > tonumber(keep_ms) then
    result_ttl_ms = keep_ms -- a result that outlived its record would pass for the next job's with that id
  end
  local is_kept = keep_ms ~= '0' and result_ttl_ms ~= '0'
  if is_kept and #result <= record.INLINE_LIMIT and result_ttl_ms == keep_ms then
    moves.move(unit, job, 'ended', 'completed', run_ms, job.created_ms, 'completed', keep_ms, 'result', result)
  else
    if is_kept then
      unit.call('SET', keys.result(unit.root, job.id), result, 'PX', result_ttl_ms)
    elseif keep_ms ~= '0' then
      unit.call('UNLINK', keys.result(unit.root, job.id)) -- that of a lost record would pass for this one's
    end
    moves.move(unit, job, 'ended', 'completed', run_ms, job.created_ms, 'completed', keep_ms)
  end
  notify(unit, job, 'completed', '', result)
  follow(unit, job)
end

-- error, and its words for an event: text of the client, or ''.
function finish.fail(unit, job, reason, error, words, run_ms)
  job.run_ms = run_ms
  if error ~= '' then
    record.remember_error(unit, job, error)
  end
  local keep_ms = keep_for(job, settings.of(unit).dead_letter_ttl_ms)
  local detail = reason .. '\t' .. (words == '' and NO_ERROR or words) .. '\t' .. job.created_ms
  local coming = fail_jobs.of(unit, job, reason, error)
  moves.move(
    unit, job, 'dead', 'failed', run_ms, detail, keep_ms, 'reason', reason, 'error', record.error_type(words)
  )
  if coming then
    fail_jobs.enter(unit, coming)
  end
  notify(unit, job, 'failed', reason, error)
  follow(unit, job)
end

local DAMAGED = '{"type":"DamagedRecord","message":"a field of its record can\'t be read"}'
local DAMAGED_WORDS = 'DamagedRecord\ta field of its record can\'t be read\t'

-- End a job whose record has rubbish in a field, so that it is in nobody's way.
function finish.fail_damaged(unit, job)
  damage.note(unit.root, 'job')
  finish.fail(unit, job, 'undecodable', DAMAGED, DAMAGED_WORDS, '')
end

-- The same for one that has no head to be read, where a job of that state was to be found. Without a record it does
-- nothing.
function finish.fail_headless(unit, id, state, lane, owner)
  local key = keys.job(unit.root, id)
  local v = unit.call('HMGET', key, 'head', 'claim', 'task', 'cancel', 'channels', 'next', 'gates')
  if v[1] and not record.parts(v[1]) then
    local epoch, nonce = record.claim_parts(v[2])
    local job = {
      key = key, id = id, state = state, big = '*', more = '', generation = '', at_ms = '', created_ms = unit.now_text,
      run_ms = '', epoch = epoch, nonce = nonce, task = v[3] or '', failures = 0, stalls = 1, cancel = v[4],
      channels = v[5], has_next = v[6], gates = v[7], owner = owner, lane = lane,
    }
    record.with_more(job)
    finish.fail_damaged(unit, job)
  end
end

-- reason: 'could_not_stop' where the handler goes on, else ''.
function finish.cancel(unit, job, run_ms, reason)
  job.run_ms = run_ms
  local keep_ms, detail = keep_for(job, for_waiters(unit, job, job.keep_ms)), reason .. '\t' .. job.created_ms
  if reason ~= '' then
    moves.move(unit, job, 'ended', 'cancelled', run_ms, detail, 'cancelled', keep_ms, 'reason', reason)
  else
    moves.move(unit, job, 'ended', 'cancelled', run_ms, detail, 'cancelled', keep_ms)
  end
  notify(unit, job, 'cancelled', reason, '')
  follow(unit, job)
end

-- Drop the successor of an active job; return whether there was one.
function finish.cancel_next(unit, id)
  local successor = successors.drop(unit, id)
  if successor then
    notify(unit, successor, 'cancelled', 'next', '')
  end
  return successor ~= nil
end

-- A job that ends because nobody wants it any more: purged.
function finish.delete(unit, job)
  local is_ended = record.is_terminal(job.state)
  moves.move(unit, job, 'gone', 'purged', '', job.state .. '\t' .. job.created_ms)
  if not is_ended then
    notify(unit, job, 'deleted', '', '')
  end
end
