-- Store jobs, each with a verdict of its own; atomic because a batch is accepted whole or not at all.
-- Reply: a verdict a job, a blank between two, or STALECALL. A repeated call answers from memory.
flags.enqueue = {}

-- A job is id, kind, task, payload; then, unless it is plain: lane, delay, run at, expires in, expires at,
-- max_stalls, keep, options, inbox. The kind is three digits: 1 for an id that was just drawn at random,
-- 1 for a plain job, and the tier.
local PLAIN_WIDTH = 4
local PLAIN_FIELDS = 3
local WIDTH = 13
local KINDS = {}
for tier = 0, 9 do
  for digits = 0, 3 do
    local is_new, is_plain = digits >= 2, digits % 2 == 1
    local code = (is_new and '1' or '0') .. (is_plain and '1' or '0') .. tier
    KINDS[code] = {
      is_new = is_new, is_plain = is_plain, tier = '' .. tier, place = job.DEFAULT_LANE .. ':' .. tier,
      width = is_plain and PLAIN_WIDTH or WIDTH,
    }
  end
end

local SLOTS = { [0] = '0', [1] = '1' } -- two calls of one client may be in flight together
local MEMORY_TTL_MS = '' .. limits.CALLS_TTL_MS

local function due_ms(q, delay_ms, at_ms)
  if delay_ms ~= '0' then
    return q.now + tonumber(delay_ms)
  end
  return tonumber(at_ms)
end

-- A record with the same id: nil when it makes room for a new one.
local function standing(q, key, id, inbox)
  local v = q.call('HMGET', key, 'head', 'inbox')
  local state = job.state(v[1])
  if state == 'failed' or state == 'cancelled' then
    q.call('ZREM', (state == 'failed' and keys.dead or keys.finished)(q.root), id)
    job.erase(q, id)
    return nil
  elseif not state then
    if v[1] then -- rubbish
      damage.note(q.root, 'job')
      job.erase(q, id)
    end
    return nil
  elseif state == 'completed' then
    return 'completed'
  end
  if inbox ~= '' then
    job.add_inbox(q, key, v[1], v[2], inbox)
    q.call('HSET', key, 'joined', '1')
  end
  return 'duplicate'
end

-- A producer that doesn't know the task leaves the lane to what workers have said of it.
local function lane_of(q, lane, task)
  if lane ~= '' then
    return lane
  end
  return job.lane_name(q.call('HGET', keys.lanes(q.root), task)) or job.DEFAULT_LANE
end

-- Write a record. What is not said takes the default and no space.
local function write(q, key, kind, id, head, task, payload, ...)
  if #payload > job.INLINE_LIMIT then
    q.call('SET', keys.payload(q.root, id), payload)
    q.call('HSET', key, 'head', job.with_big(head), 'task', task, ...)
  elseif q.try('HSET', key, 'head', head, 'task', task, 'payload', payload, ...) ~= PLAIN_FIELDS then
    q.call('HSET', key, 'head', head, 'task', task, 'payload', payload, ...) -- it has more, or the key is a stranger's
  end
  if kind.tier ~= job.DEFAULT_TIER then
    q.call('HSET', key, 'tier', kind.tier)
  end
end

-- Store a job that asks for something, and return its verdict.
local function store(q, key, kind, id, args, at)
  local task, payload = args[at + 2], args[at + 3]
  local lane, due = lane_of(q, args[at + 4], task), due_ms(q, args[at + 5], args[at + 6])
  local fields = {}
  local function add(field, value, default)
    if value ~= default then
      fields[#fields + 1] = field
      fields[#fields + 1] = value
    end
  end
  add('lane', lane, job.DEFAULT_LANE)
  add('expires', queue.text(due_ms(q, args[at + 7], args[at + 8])), '0')
  add('max_stalls', args[at + 9], '')
  add('keep', args[at + 10], '')
  add('options', args[at + 11], '')
  add('inbox', args[at + 12], '')
  if due > q.now then
    queue.count(q, 'scheduled', 1)
    local turn = job.turn(q)
    write(q, key, kind, id, job.new_head(q, 'scheduled', '+', turn), task, payload, unpack(fields))
    job.wait_until(q, id, job.member(id, q.now_text, turn), due)
    queue.event(q, 'scheduled', id, task, '0', '', '', '', '')
    return 'scheduled'
  end
  write(q, key, kind, id, job.new_head(q, 'queued', '+', queue.generation(q)), task, payload, unpack(fields))
  queue.count_ready(q, lane, 1)
  job.to_tail(q, lane .. ':' .. kind.tier, id)
  queue.event(q, 'queued', id, task, '0', '', '', '', '')
  return 'queued'
end

-- Store a batch and return the verdicts. What most jobs do is done here, and counted once.
local function store_all(q, args, at)
  local verdicts, n, plain, stored = {}, 0, 0, 0
  local plain_head = job.new_head(q, 'queued', '', queue.generation(q))
  while at <= #args do
    local id, kind = args[at], KINDS[args[at + 1]]
    local key = keys.job(q.root, id)
    -- An id that was just drawn at random can't be there, and the look costs 2 µs.
    local verdict = not kind.is_new and standing(q, key, id, kind.is_plain and '' or args[at + 12])
    if not verdict then
      stored = stored + 1
      if kind.is_plain then
        local task = args[at + 2]
        write(q, key, kind, id, plain_head, task, args[at + 3])
        job.to_tail(q, kind.place, id)
        queue.line(q, 'queued\t' .. id .. '\t' .. task .. '\t0\t\t\t\t')
        plain = plain + 1
        verdict = 'queued'
      else
        verdict = store(q, key, kind, id, args, at)
      end
    end
    n = n + 1
    verdicts[n] = verdict
    at = at + kind.width
  end
  if plain > 0 then
    queue.count_ready(q, job.DEFAULT_LANE, plain)
  end
  if stored > 0 then
    queue.tally(q, 'enqueued', stored)
  end
  return verdicts
end

function functions.enqueue(roots, args)
  local client, number = unpack(args)
  local q = queue.open(roots[1])
  -- Each slot holds the last number that came to it, and its answer.
  local memory = keys.calls(q.root, client, SLOTS[number % 2])
  local seen = q.try('GET', memory)
  local answered, answer = string.match(seen and not seen.err and seen or '', '^(%d+) (.*)$')
  if answered == number then
    return answer
  elseif answered and number + 0 < answered + 0 then
    return redis.error_reply('STALECALL ' .. number .. ' is older than ' .. answered)
  end
  answer = table.concat(store_all(q, args, 3), ' ')
  q.raw('SET', memory, number .. ' ' .. answer, 'PX', MEMORY_TTL_MS)
  queue.close(q)
  return answer
end
