-- Store jobs, each with a verdict of its own; atomic because a batch is accepted whole or not at all.
-- Reply: a verdict a job, or STALECALL. A repeated call answers from memory.
flags.enqueue = {}

-- A job is id, flags, task, payload, tier; then, unless it is plain: lane, delay, run at, expires in,
-- expires at, max_stalls, keep, options, inbox. The flags are two digits: 1 for an id that was just
-- drawn at random, 1 for a plain job.
local IS_NEW, IS_PLAIN = { ['10'] = true, ['11'] = true }, { ['01'] = true, ['11'] = true }
local PLAIN_WIDTH = 5
local WIDTH = 14
local SLOTS = { [0] = '0', [1] = '1' } -- two calls of one client may be in flight together
local MEMORY_TTL_MS = '600000'

local function due_ms(q, delay_ms, at_ms)
  if delay_ms ~= '0' then
    return q.now + tonumber(delay_ms)
  end
  return tonumber(at_ms)
end

-- A record with the same id: nil when it makes room for a new one.
local function standing(q, key, id, inbox)
  local state, seen = unpack(q.call('HMGET', key, 'state', 'inbox'))
  if state == 'failed' or state == 'cancelled' then
    q.call('ZREM', q.root .. (state == 'failed' and ':dead' or ':finished'), id)
    job.erase(q, id)
    return nil
  elseif not state then
    return nil
  elseif state == 'completed' then
    return 'completed'
  end
  if inbox ~= '' then
    job.add_inbox(q, key, seen, inbox)
  end
  return 'duplicate'
end

-- What is not said takes the default and no space.
local function extras(q, args, at, lane)
  local fields = {}
  local function set(field, value, default)
    if value ~= default then
      fields[#fields + 1] = field
      fields[#fields + 1] = value
    end
  end
  set('at', q.now_text, '') -- tells a claim to look for more than a plain job has
  set('lane', lane, job.DEFAULT_LANE)
  set('expires', queue.text(due_ms(q, args[at + 8], args[at + 9])), '0')
  set('max_stalls', args[at + 10], '')
  set('keep', args[at + 11], '')
  set('options', args[at + 12], '')
  set('inbox', args[at + 13], '')
  return unpack(fields)
end

-- A producer that doesn't know the task leaves the lane to what workers have said of it.
local function lane_of(q, lane, task)
  if lane ~= '' then
    return lane
  end
  return q.call('HGET', q.root .. ':lanes', task) or job.DEFAULT_LANE
end

local function store(q, args, at, is_plain)
  local id, task, payload, tier = args[at], args[at + 2], args[at + 3], args[at + 4]
  local key = q.root .. ':job:' .. id
  local lane, due = job.DEFAULT_LANE, 0
  if not is_plain then
    lane, due = lane_of(q, args[at + 5], task), due_ms(q, args[at + 6], args[at + 7])
  end
  -- An id that was just drawn at random can't be there, and the look costs 2 µs.
  if not IS_NEW[args[at + 1]] then
    local verdict = standing(q, key, id, is_plain and '' or args[at + 13])
    if verdict then
      return verdict
    end
  end
  local where, value = 'payload', payload
  if #payload > job.INLINE_LIMIT then
    q.call('SET', q.root .. ':payload:' .. id, payload)
    where, value = 'big', '1'
  end
  if tier ~= job.DEFAULT_TIER then
    q.call('HSET', key, 'tier', tier)
  end
  queue.tally(q, 'enqueued')
  if not is_plain then
    q.call('HSET', key, 'created', q.now_text, extras(q, args, at, lane))
  end
  if due > q.now then
    q.call('HSET', key, 'state', 'scheduled', 'task', task, 'created', q.now_text, where, value)
    queue.count(q, 'scheduled', 1)
    job.wait_until(q, id, due)
    queue.event(q, 'scheduled', id, task, '0', '', '', '', '')
    return 'scheduled'
  end
  q.call(
    'HSET', key, 'state', 'queued', 'gen', queue.generation(q), 'task', task, 'created', q.now_text, where, value
  )
  queue.count_ready(q, lane, 1)
  job.to_tail(q, id, lane, tier)
  queue.event(q, 'queued', id, task, '0', '', '', '', '')
  return 'queued'
end

function functions.enqueue(keys, args)
  local client, number = unpack(args)
  local q = queue.open(keys[1])
  -- Each slot holds the last number that came to it, and its answer.
  local memory = q.root .. ':calls:' .. client .. ':' .. SLOTS[number % 2]
  local answered, answer = string.match(q.call('GET', memory) or '', '^(%d+) (.*)$')
  if answered == number then
    return cmsgpack.unpack(answer)
  elseif answered and number + 0 < answered + 0 then
    return redis.error_reply('STALECALL ' .. number .. ' is older than ' .. answered)
  end
  local verdicts, at = {}, 3
  while at <= #args do
    local is_plain = IS_PLAIN[args[at + 1]]
    verdicts[#verdicts + 1] = store(q, args, at, is_plain)
    at = at + (is_plain and PLAIN_WIDTH or WIDTH)
  end
  q.call('SET', memory, number .. ' ' .. cmsgpack.pack(verdicts), 'PX', MEMORY_TTL_MS)
  queue.close(q)
  return verdicts
end
