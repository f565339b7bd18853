-- A job's record and the keys beside it, and the moves between waiting places.
job.INLINE_LIMIT = 64 -- a longer value would turn the record from a compact listpack to a hash table
job.DEFAULT_LANE = 'default'
job.DEFAULT_TIER = '5'
job.DEFAULT_KEEP_MS = '3600000'
job.DEFAULT_MAX_STALLS = 3

local WAITING_FIELDS = { 'lane', 'tier', 'expires', 'max_stalls', 'keep' }
local ENDED_FIELDS = { 'state', 'result', 'big', 'attempts', 'stalls' }

function job.key(q, id)
  return q.root .. ':job:' .. id
end

-- nil when there is no record.
function job.load(q, id)
  local key = q.root .. ':job:' .. id
  -- A field costs 0.2 µs.
  local v = q.call('HMGET', key, 'state', 'claim', 'epoch', 'task', 'cancel', 'inbox', 'big')
  local state, epoch = v[1], v[3]
  if not state then
    return nil
  end
  local attempts, stalls
  -- Neither an error nor a stall comes before the end of the first attempt.
  if epoch and not (epoch == '1' and state == 'active') then
    attempts, stalls = unpack(q.call('HMGET', key, 'attempts', 'stalls'))
  end
  return {
    key = key, id = id, state = state, claim = v[2], epoch = epoch or '0', task = v[4],
    attempts = attempts or 0, stalls = stalls or 0, cancel = v[5], inbox = v[6], big = v[7],
  }
end

-- What a job needs to know to wait again, or to end without a worker.
function job.load_waiting(q, id)
  local record = job.load(q, id)
  if record then
    local v = q.call('HMGET', record.key, unpack(WAITING_FIELDS))
    record.lane, record.tier = v[1] or job.DEFAULT_LANE, v[2] or job.DEFAULT_TIER
    record.expires = tonumber(v[3] or 0)
    record.max_stalls = tonumber(v[4] or job.DEFAULT_MAX_STALLS)
    record.keep = v[5] or job.DEFAULT_KEEP_MS
  end
  return record
end

function job.is_terminal(state)
  return state == 'completed' or state == 'failed' or state == 'cancelled'
end

-- The incarnation that claimed a job last: the first part of the claim's nonce.
function job.owner(record)
  if not record.owner then
    record.owner = record.claim and string.match(record.claim, '^([^/]*)/') or ''
  end
  return record.owner
end

function job.is_overdue(q, record)
  return record.expires > 0 and record.expires <= q.now
end

function job.erase(q, id)
  local root = q.root
  q.call(
    'UNLINK', root .. ':job:' .. id, root .. ':payload:' .. id, root .. ':result:' .. id, root .. ':errors:' .. id,
    root .. ':output:' .. id
  )
end

-- Erase what an index pointed to, and only those keys that such a job can have: to look for four that are not there
-- costs 4 µs. Where that record has ended by its TTL, the id may be a new job's by now.
function job.erase_ended(q, id, is_dead_letter)
  local key = q.root .. ':job:' .. id
  local state, result, big, attempts, stalls = unpack(q.call('HMGET', key, unpack(ENDED_FIELDS)))
  if not job.is_terminal(state) or (state == 'failed') ~= is_dead_letter then
    return
  end
  local keys = { key }
  local function add(name)
    keys[#keys + 1] = q.root .. name .. id
  end
  if not result then
    add(':result:')
  end
  if big then
    add(':payload:')
    add(':output:')
  end
  if is_dead_letter or attempts or stalls then
    add(':errors:')
  end
  q.call('UNLINK', unpack(keys))
end

-- Note one more channel to be told of a job's end; beyond 64 of them waiters fall back to their poll.
function job.add_inbox(q, key, seen, channel)
  if not seen then
    q.call('HSET', key, 'inbox', channel)
  elseif #seen < 64 * #channel and not string.find(seen, channel, 1, true) then
    q.call('HSET', key, 'inbox', seen .. ' ' .. channel)
  end
end

-- Let a record and what lies beside it live for ttl_ms; nothing waits on a record with a TTL. Output has one already,
-- and must not outlive the record, or it would pass for that of the next job with the id.
function job.expire(q, record, ttl_ms)
  q.call('PEXPIRE', record.key, ttl_ms)
  if record.big then
    q.call('PEXPIRE', q.root .. ':payload:' .. record.id, ttl_ms)
    q.call('PEXPIRE', q.root .. ':output:' .. record.id, ttl_ms, 'LT')
  end
  if record.attempts ~= 0 or record.stalls ~= 0 then
    q.call('PEXPIRE', q.root .. ':errors:' .. record.id, ttl_ms)
  end
end

-- Errors are text of the client; the time before them is the server's.
function job.remember_error(q, id, attempt, blob)
  local key = q.root .. ':errors:' .. id
  q.call('LPUSH', key, q.now_text .. ' ' .. attempt .. ' ' .. blob)
  q.call('LTRIM', key, '0', '9')
end

local function place(lists, name, entry)
  local list = lists[name]
  if not list then
    list = {}
    lists[name] = list
  end
  list[#list + 1] = entry
end

-- Note a ready entry for the end of the call; the record is written by the caller.
function job.to_tail(q, id, lane, tier)
  place(q.tails, lane .. ':' .. tier, queue.generation(q) .. ':' .. id)
end

-- Put an active or delayed job to the head or tail of its tier.
function job.make_ready(q, record, lists, ...)
  if not job.is_terminal(record.state) then
    queue.count(q, record.state, -1)
  end
  queue.count_ready(q, record.lane, 1)
  q.call('HSET', record.key, 'state', 'queued', 'gen', queue.generation(q), 'at', q.now_text, ...)
  place(lists, record.lane .. ':' .. record.tier, queue.generation(q) .. ':' .. record.id)
end

function job.delay(q, record, state, due_ms, ...)
  queue.count(q, record.state, -1)
  queue.count(q, state, 1)
  q.call('HSET', record.key, 'state', state, 'at', q.now_text, ...)
  job.wait_until(q, record.id, due_ms)
end

function job.lane(q, id)
  return q.call('HGET', job.key(q, id), 'lane') or job.DEFAULT_LANE
end

-- Wakes a consumer of the job's lane when the queue's next due time comes earlier.
function job.wait_until(q, id, due_ms)
  local key = q.root .. ':delayed'
  local first = q.call('ZRANGE', key, '0', '0', 'WITHSCORES')
  if not first[1] or due_ms < tonumber(first[2]) then
    q.wakes[job.lane(q, id)] = true
  end
  q.call('ZADD', key, queue.text(due_ms), id)
end
