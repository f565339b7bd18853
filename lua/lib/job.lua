-- A job's record and the keys beside it, and the moves between waiting places.
job.INLINE_LIMIT = 64 -- a longer value would turn the record from a compact listpack to a hash table
job.DEFAULT_LANE = limits.DEFAULT_LANE
job.DEFAULT_TIER = '' .. limits.DEFAULT_PRIORITY
job.DEFAULT_KEEP_MS = '' .. limits.DEFAULT_KEEP_MS
job.DEFAULT_MAX_STALLS = limits.DEFAULT_MAX_STALLS
job.OUTPUT_TTL_MS = '' .. limits.OUTPUT_TTL_MS
local CHANNELS, LAST_ERROR = limits.CHANNELS_LIMIT, '' .. limits.ERRORS_KEPT - 1

local NOTHING = {}
local WAITING_FIELDS = { 'lane', 'tier', 'expires', 'max_stalls', 'keep' }

-- What changes with the state is one field, `head`: a field costs 2,200 instructions to read and 1,700 to write. Its
-- parts, a tab between two: state, generation, the times of the last change and of the creation, run_ms. A new job's
-- last change is empty: it is the creation. Behind the state stand a * where the payload or output has a key of its
-- own, and a + where the record may have fields that few jobs have. All this stays below 64 bytes.
local HEAD = '^(%l+)(%*?)(%+?)\t(%d*)\t(%d*)\t(%d+)\t(%d*)$'
local STATES = {
  scheduled = true, queued = true, active = true, retrying = true, completed = true, failed = true, cancelled = true,
}

-- Text that is a whole number from 0 on which Redis and Lua can work with, else nil.
function job.digits(word)
  return word and #word <= 15 and string.match(word, '^%d+$')
end

-- The number that a word says, the default where it says none.
function job.number(word, default)
  return tonumber(job.digits(word) or default)
end

-- Whether a field that need not be there holds such a number.
function job.is_number(word)
  return not word or job.digits(word) ~= nil
end

-- Return state, * or '', + or '', generation, at, created, run_ms; nil of what is no head.
function job.parts(head)
  local state, big, more, generation, at, created, run_ms = string.match(head or '', HEAD)
  if STATES[state] and #at <= 15 and #created <= 15 and #run_ms <= 15 then
    return state, big, more, generation, at, created, run_ms
  end
end

-- nil of what is no head.
function job.state(head)
  return job.parts(head) and string.match(head, '^%l+')
end

-- The head of a job that changes now.
function job.head(q, record, state, generation)
  return state .. record.big .. record.more .. '\t' .. generation .. '\t' .. q.now_text .. '\t' .. record.created
    .. '\t' .. record.run
end

-- The head of a job that comes now; `more` is + or ''.
function job.new_head(q, state, more, generation)
  return state .. more .. '\t' .. generation .. '\t\t' .. q.now_text .. '\t'
end

-- Return * or '', and created, of a queued job of this generation that is as it came and has no fields that only few
-- have; nil of any other. To take all parts of such a head costs more, and most jobs have one.
function job.as_it_came(head, generation)
  return string.match(head or '', '^queued(%*?)\t' .. generation .. '\t\t(%d+)\t$')
end

-- Return created, of an active job that has nothing beside its record, and nobody who waits; nil of any other.
function job.plain_active(head)
  return string.match(head or '', '^active\t\t%d+\t(%d+)')
end

-- The parts of the field `claim`, which is epoch and nonce, a tab between them.
function job.claim_parts(claim)
  local epoch, nonce = string.match(claim or '', '^(%d+)\t(.*)$')
  return job.digits(epoch) or '0', nonce or ''
end

-- The head of a job that has a payload or output in a key of its own.
function job.with_big(head)
  return (string.gsub(head, '^(%l+)%*?', '%1*'))
end

-- Write fields that few jobs have, of a job that does not change its state.
function job.add_fields(q, key, head, ...)
  q.call('HSET', key, 'head', (string.gsub(head, '^(%l+%*?)%+?', '%1+')), ...)
end

-- nil when there is no record.
function job.load(q, id)
  local key = keys.job(q.root, id)
  local v = q.call('HMGET', key, 'head', 'claim', 'task')
  return job.record(q, id, key, v[1], v[2], v[3])
end

-- The record whose head, claim and task were read, nil when there is none.
function job.record(q, id, key, head, claim, task)
  local state, big, more, generation, at, created, run_ms = job.parts(head)
  if not state then
    return nil
  end
  local epoch, nonce = job.claim_parts(claim)
  local few = more ~= '' and q.call('HMGET', key, 'attempts', 'stalls', 'cancel', 'inbox') or NOTHING
  local attempts, stalls = job.number(few[1], 0), job.number(few[2], 0)
  return {
    key = key, id = id, head = head, state = state, big = big, more = more, generation = generation, at = at,
    created = created, run = run_ms, epoch = epoch, claim = nonce, task = task or '',
    attempts = attempts, stalls = stalls, cancel = few[3], inbox = few[4], owner = false,
    is_sound = task and job.is_number(few[1]) and job.is_number(few[2]),
    has_errors = few[1] or few[2],
  }
end

-- What a job needs to know to wait again, or to end without a worker.
function job.load_waiting(q, id)
  local record = job.load(q, id)
  if record then
    local v = q.call('HMGET', record.key, unpack(WAITING_FIELDS))
    record.lane = job.lane_name(v[1]) or job.DEFAULT_LANE
    record.tier = string.match(v[2] or '', '^%d$') or job.DEFAULT_TIER
    record.expires = job.number(v[3], 0)
    record.max_stalls = job.number(v[4], job.DEFAULT_MAX_STALLS)
    record.keep = job.digits(v[5]) or job.DEFAULT_KEEP_MS
    record.is_sound = record.is_sound and job.is_number(v[3]) and job.is_number(v[4])
  end
  return record
end

function job.is_terminal(state)
  return state == 'completed' or state == 'failed' or state == 'cancelled'
end

-- The incarnation that claimed a job last: the first part of the claim's nonce.
function job.owner(record)
  if not record.owner then
    record.owner = string.match(record.claim, '^([^/]*)/') or ''
  end
  return record.owner
end

-- Whether it is too late to start a job that no worker has ever taken: what has started does not expire.
function job.is_overdue(q, record)
  return record.expires > 0 and record.expires <= q.now and record.epoch == '0'
end

-- Return how many keys there were.
function job.erase(q, id)
  local root = q.root
  return q.call(
    'UNLINK', keys.job(root, id), keys.payload(root, id), keys.result(root, id), keys.errors(root, id),
    keys.output(root, id)
  )
end

-- Erase what lies beside a record that was lost behind our back; return how many keys that were.
function job.erase_lost(q, id)
  if q.call('EXISTS', keys.job(q.root, id)) == 1 then
    return 0
  end
  return job.erase(q, id)
end

-- Erase what an index pointed to, and only those keys that such a job can have: to look for four that are not there
-- costs 4 µs. Where that record has ended by its TTL, the id may be a new job's by now.
function job.erase_ended(q, id, is_dead_letter)
  local key = keys.job(q.root, id)
  local v = q.call('HMGET', key, 'head', 'result')
  local state, big, more = string.match(v[1] or '', '^(%l+)(%*?)(%+?)')
  if not job.is_terminal(state) or (state == 'failed') ~= is_dead_letter then
    return
  end
  local names = { key }
  local function add(kind)
    names[#names + 1] = keys[kind](q.root, id)
  end
  if not v[2] then
    add('result')
  end
  if big ~= '' then
    add('payload')
    add('output')
  end
  if is_dead_letter or more ~= '' then
    add('errors')
  end
  q.call('UNLINK', unpack(names))
end

-- Note one more channel to be told of a job's end; beyond the limit waiters fall back to their poll.
function job.add_inbox(q, key, head, seen, channel)
  if not seen then
    job.add_fields(q, key, head, 'inbox', channel)
  elseif #seen < CHANNELS * #channel and not string.find(seen, channel, 1, true) then
    q.call('HSET', key, 'inbox', seen .. ' ' .. channel)
  end
end

-- Let a record and what lies beside it live for ttl_ms; nothing waits on a record with a TTL. Output has one already,
-- and must not outlive the record, or it would pass for that of the next job with the id.
function job.expire(q, record, ttl_ms)
  q.call('PEXPIRE', record.key, ttl_ms)
  if record.big ~= '' then
    q.call('PEXPIRE', keys.payload(q.root, record.id), ttl_ms)
    q.call('PEXPIRE', keys.output(q.root, record.id), ttl_ms, 'LT')
  end
  if record.attempts ~= 0 or record.stalls ~= 0 then
    q.call('PEXPIRE', keys.errors(q.root, record.id), ttl_ms)
  end
end

-- Errors are text of the client; the time before them is the server's. The first makes a new list: what lies there is
-- of a job whose record was lost.
function job.remember_error(q, record, blob)
  local key = keys.errors(q.root, record.id)
  if not record.has_errors then
    q.call('UNLINK', key)
    record.has_errors = true
  end
  q.call('LPUSH', key, q.now_text .. ' ' .. record.epoch .. ' ' .. blob)
  q.call('LTRIM', key, '0', LAST_ERROR)
end

local function place(lists, name, entry)
  local list = lists[name]
  if not list then
    list = {}
    lists[name] = list
  end
  list[#list + 1] = entry
end

-- Note a ready entry of <lane>:<tier> for the end of the call; the record is written by the caller.
function job.to_tail(q, name, id)
  place(q.tails, name, queue.generation(q) .. ':' .. id)
end

-- Put an active or delayed job to the head or tail of its tier.
function job.make_ready(q, record, lists)
  if not job.is_terminal(record.state) then
    queue.count(q, record.state, -1)
  end
  queue.count_ready(q, record.lane, 1)
  q.call('HSET', record.key, 'head', job.head(q, record, 'queued', queue.generation(q)))
  place(lists, record.lane .. ':' .. record.tier, queue.generation(q) .. ':' .. record.id)
end

-- The place of a new delayed job among those of the same due time and the same millisecond: that of its creation. It
-- stands in the head where a ready job has its generation.
function job.turn(q)
  return string.format('%011d%03d', q.stamp, q.counts.scheduled)
end

-- A delayed job's member of the sorted set: with equal scores Redis orders by its bytes, and so by creation. A member
-- that is not what its record says stands for nothing.
function job.member(id, created, turn)
  return created .. (turn ~= '' and turn or '00000000000000') .. ':' .. id
end

-- nil of what is no member.
function job.id_of(member)
  return string.match(member, '^%d+:(.*)$')
end

function job.is_delayed(state)
  return state == 'scheduled' or state == 'retrying'
end

-- The delayed job that a member stands for; nil of one that stands for nothing.
function job.of_member(q, member)
  local id = job.id_of(member)
  local record = id and job.load_waiting(q, id)
  if record and job.is_delayed(record.state) and job.member(id, record.created, record.generation) == member then
    return record
  end
  return nil
end

function job.delay(q, record, state, due_ms, ...)
  queue.count(q, record.state, -1)
  queue.count(q, state, 1)
  q.call('HSET', record.key, 'head', job.head(q, record, state, ''), ...)
  job.wait_until(q, record.id, job.member(record.id, record.created, ''), due_ms)
end

-- A word that can be the name of a lane, else nil.
function job.lane_name(word)
  return word and #word <= 100 and string.match(word, '^%w[%w._-]*$')
end

function job.lane(q, id)
  return job.lane_name(q.call('HGET', keys.job(q.root, id), 'lane')) or job.DEFAULT_LANE
end

-- Wakes a consumer of the job's lane when the queue's next due time comes earlier.
function job.wait_until(q, id, member, due_ms)
  local key = keys.delayed(q.root)
  local first = q.call('ZRANGE', key, '0', '0', 'WITHSCORES')
  if not first[1] or due_ms < tonumber(first[2]) then
    q.wakes[job.lane(q, id)] = true
  end
  q.call('ZADD', key, queue.text(due_ms), member)
end
