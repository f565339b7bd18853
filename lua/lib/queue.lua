-- One call's view of a queue: its keys, its time, and what it gathers to write once at the end.
-- Every function opens it first and closes it last.
local EVENTS_AN_ENTRY = limits.EVENTS_AN_ENTRY
local STATS_BUCKET_MS, STATS_TTL_MS = limits.STATS_BUCKET_MS, '' .. limits.STATS_TTL_MS

local NOTHING = {}
local SMALL = 10000
local small = {} -- text of small numbers and names of histogram fields, made once
local bounds = { ['wait:'] = {}, ['run:'] = {} }

-- Milliseconds do not fit the 14 digits of Lua's own number format, and whole numbers need none of the
-- arithmetic that %.0f does, which costs a tenth of a call.
function queue.text(number)
  local known = small[number]
  if not known then
    known = string.format('%d', number)
    if number > -SMALL and number < SMALL then
      small[number] = known
    end
  end
  return known
end

function queue.open(root)
  local now, stamp = clock.read()
  return {
    call = damage.call, -- what fails because of strange data is mended and repeated
    raw = redis.call, -- for keys whose type the call has seen, and for close()
    try = redis.pcall, -- where an error is looked at on the spot
    root = root,
    now = now,
    stamp = stamp,
    now_text = queue.text(now),
    settings = false, -- here what comes later has its place, or the table would grow for it
    gen = false,
    counts = {},
    stats = {},
    heads = {},
    tails = {},
    finished = {},
    left = {},
    dead = {},
    events = {},
    event_count = 0, -- what # costs grows with the list, to 1,000 instructions
    wakes = {}, -- lanes that are to get a wake-up token
    total = false, -- of events, before these
    event_first = 1, -- the first of them that is not written
    is_new_bucket = false,
    joined = false,
    joiner = '',
  }
end

local CONFIG_FIELDS = { 'paused', 'history', 'dead_letters', 'dead_letter_ttl_ms', 'events' }

local DEFAULTS = {
  is_paused = false, history = limits.DEFAULT_HISTORY, dead = limits.DEFAULT_DEAD_LETTERS,
  dead_ttl_ms = '' .. limits.DEFAULT_DEAD_LETTER_TTL_MS, events = '' .. limits.DEFAULT_EVENTS,
}

-- Most queues have the defaults: to read one field that says so takes 9,000 instructions less than all.
function queue.config(q)
  if q.settings then
    return q.settings
  end
  local key = keys.config(q.root)
  if not q.try('HGET', key, 'is_set') then
    q.settings = DEFAULTS
    return DEFAULTS
  end
  local v = q.call('HMGET', key, unpack(CONFIG_FIELDS))
  q.settings = {
    is_paused = v[1] == '1',
    history = job.number(v[2], DEFAULTS.history),
    dead = job.number(v[3], DEFAULTS.dead),
    dead_ttl_ms = job.digits(v[4]) or DEFAULTS.dead_ttl_ms,
    events = job.digits(v[5]) or DEFAULTS.events,
  }
  return q.settings
end

function queue.configure(q, ...)
  q.call('HSET', keys.config(q.root), 'is_set', '1', ...)
end

-- A number that no other call of this queue has, short of a stepped clock: entries left behind by cancelled
-- jobs don't match, and one that did would only let its job run from another place in line.
function queue.generation(q)
  if not q.gen then
    q.gen = queue.text(q.stamp)
  end
  return q.gen
end

function queue.count(q, state, delta)
  q.counts[state] = (q.counts[state] or 0) + delta
end

-- Count ready jobs in and out. Those of other lanes than the default one are counted apart too, so that a claim
-- knows what is left in its own.
function queue.count_ready(q, lane, delta)
  queue.count(q, 'queued', delta)
  if lane ~= job.DEFAULT_LANE then
    queue.count(q, 'elsewhere', delta)
    queue.count(q, 'queued:' .. lane, delta)
  end
end

-- How many jobs of a lane are ready, short of what this call has not written yet.
function queue.ready(q, lane)
  local key = keys.counts(q.root)
  if lane ~= job.DEFAULT_LANE then
    return tonumber(q.call('HGET', key, 'queued:' .. lane)) or 0
  end
  local v = q.call('HMGET', key, 'queued', 'elsewhere')
  return (tonumber(v[1]) or 0) - (tonumber(v[2]) or 0)
end

-- The default lane and those others that have ready jobs.
function queue.lanes(q)
  local lanes = { job.DEFAULT_LANE }
  for _, name in ipairs(q.call('HKEYS', keys.counts(q.root))) do
    lanes[#lanes + 1] = string.match(name, '^queued:(.*)$')
  end
  return lanes
end

function queue.tally(q, field, n)
  q.stats[field] = (q.stats[field] or 0) + (n or 1)
end

local function bound(value_ms)
  if value_ms <= 0 then
    return '0'
  end
  return queue.text(math.ceil(1.1 ^ math.ceil(math.log(value_ms) / math.log(1.1) - 1e-9)))
end

-- Upper bounds of a histogram that grows by a tenth: any percentile is at most 10 % too high. The time is text.
function queue.observe(q, name, value_ms)
  local fields = bounds[name]
  local field = fields[value_ms]
  if not field then
    local number = tonumber(value_ms)
    field = name .. bound(number)
    if number < SMALL then
      fields[value_ms] = field
    end
  end
  queue.tally(q, field)
end

-- Fields in this order, tab-separated: neither ids nor task names hold control characters.
function queue.event(q, kind, id, task, attempt, worker, wait_ms, run_ms, detail)
  queue.line(q, kind .. '\t' .. id .. '\t' .. task .. '\t' .. attempt .. '\t' .. worker .. '\t' .. wait_ms .. '\t'
    .. run_ms .. '\t' .. detail)
end

-- For those who make many lines that are alike: to join all eight fields of each costs 2,000 instructions more.
function queue.line(q, line)
  local n = q.event_count + 1
  q.event_count = n
  q.events[n] = line
end

-- Several events an entry: one entry each would cost 3 µs a transition. `n` counts all events up to the
-- entry, so that a reader knows how many it missed.
local function write_events(q, call)
  local key, count = keys.events(q.root), q.event_count
  if count == 0 then
    return
  end
  local limit = queue.config(q).events
  if not q.total then
    q.total = call('HINCRBY', keys.counts(q.root), 'events', queue.text(count)) - count
  end
  for first = q.event_first, count, EVENTS_AN_ENTRY do
    local last = math.min(first + EVENTS_AN_ENTRY - 1, count)
    local lines = table.concat(q.events, '\n', first, last)
    call('XADD', key, 'MAXLEN', '~', limit, '*', 'n', queue.text(q.total + last), 'events', lines)
    q.event_first = last + 1
  end
end

-- Leave one wake-up token of a lane where none is: whoever takes it claims.
function queue.leave_wake(q, lane, call)
  call = call or q.call
  local key = keys.wake(q.root, lane)
  if not queue.config(q).is_paused and call('LLEN', key) == 0 then
    call('RPUSH', key, '1')
  end
end

-- Tell a channel. The word is a hint, so nobody's call fails when the user has no right to send it.
function queue.publish(q, channel, message)
  local reply = q.try('PUBLISH', channel, message)
  if type(reply) == 'table' then
    damage.note(q.root, 'publish')
  end
end

-- Have the consumers of every lane look that has something ready, or the first job to fall due.
function queue.wake_all(q)
  for _, lane in ipairs(queue.lanes(q)) do
    q.wakes[lane] = true
  end
  local first = q.call('ZRANGE', keys.delayed(q.root), '0', '0')[1]
  local id = first and job.id_of(first)
  if id then
    q.wakes[job.lane(q, id)] = true
  end
end

-- What the call gathered is struck off as it is written, so that it can be written on after an error.
local function push(q, call, command, lists)
  for name, entries in pairs(lists) do
    for first = 1, #entries, 1000 do
      -- Only the first piece of a list can meet a strange key.
      call(command, keys.ready(q.root, name), unpack(entries, first, math.min(first + 999, #entries)))
    end
    q.wakes[string.sub(name, 1, -3)] = true -- without the tier
    lists[name] = nil
  end
end

local function index(q, call, key, members, limit, is_dead_letters)
  if #members == 0 then
    return
  end
  for first = 1, #members, 1000 do
    call('ZADD', key, unpack(members, first, math.min(first + 999, #members)))
  end
  local excess = call('ZCARD', key) - limit
  if excess > 0 then
    -- More than came in, so that a lowered limit is reached, but bounded.
    local popped = call('ZPOPMIN', key, math.min(excess, #members + 100))
    for i = 1, #popped, 2 do
      job.erase_ended(q, popped[i], is_dead_letters)
    end
  end
end

-- Note that a job leaves its incarnation's processing set.
function queue.leave(q, incarnation, id)
  local ids = q.left[incarnation]
  if not ids then
    ids = {}
    q.left[incarnation] = ids
  end
  ids[#ids + 1] = id
end

-- Note that an incarnation has claimed jobs.
function queue.join(q, incarnation, ids)
  q.joined, q.joiner = ids, incarnation
end

-- Write the gathered ready entries now, for a caller that goes on to claim.
function queue.flush(q)
  push(q, q.call, 'RPUSH', q.tails)
  push(q, q.call, 'LPUSH', q.heads)
end

local function write_stats(q, call)
  local key = keys.stats(q.root, queue.text(q.now - q.now % STATS_BUCKET_MS))
  for field, n in pairs(q.stats) do
    q.is_new_bucket = call('HINCRBY', key, field, queue.text(n)) == n or q.is_new_bucket
    q.stats[field] = nil
  end
  if q.is_new_bucket then -- perhaps the first field; the TTL runs from then on
    call('PEXPIRE', key, STATS_TTL_MS)
  end
end

local function write(q, call)
  push(q, call, 'RPUSH', q.tails)
  push(q, call, 'LPUSH', q.heads)
  if q.joined then
    call('SADD', keys.processing(q.root, q.joiner), unpack(q.joined))
    q.joined = false
  end
  for incarnation, ids in pairs(q.left) do
    call('SREM', keys.processing(q.root, incarnation), unpack(ids))
  end
  index(q, call, keys.finished(q.root), q.finished, queue.config(q).history, false)
  q.finished = NOTHING
  index(q, call, keys.dead(q.root), q.dead, queue.config(q).dead, true)
  q.dead = NOTHING
  for name, delta in pairs(q.counts) do
    local is_none = delta ~= 0 and call('HINCRBY', keys.counts(q.root), name, queue.text(delta)) == 0
    q.counts[name] = nil
    if is_none and string.sub(name, 1, 7) == 'queued:' then
      call('HDEL', keys.counts(q.root), name) -- or lanes that were used once would pile up
    end
  end
  if next(q.stats) then
    write_stats(q, call)
  end
  write_events(q, call)
  for lane in pairs(q.wakes) do
    queue.leave_wake(q, lane, call)
    q.wakes[lane] = nil
  end
end

-- Write what was gathered: fast, and after an error with care from where that happened.
function queue.close(q)
  if not pcall(write, q, q.raw) then
    write(q, q.call)
  end
end
