-- Store jobs, each with a verdict of its own; atomic because a batch is accepted whole or not at all.
-- Reply: a verdict a job, a blank between two, or STALECALL. A repeated call answers from memory.

-- A job is id, kind, task, payload; then, unless it is plain: lane, delay, run at, expires in, expires at,
-- max_stalls, keep, options, channel. The kind is three digits: 1 for an id that was just drawn at random,
-- 1 for a plain job, and the tier.
local PLAIN_WIDTH, WIDTH = 4, 13
local CALLS_TTL_MS = '' .. limits.CALLS_TTL_MS
local SLOTS = { [0] = '0', [1] = '1' } -- two calls of one client may be in flight together

local kinds = {} -- those that came, taken apart once

local function read_kind(code)
  local drawn, plain_digit, tier = string.match(code, '^(%d)(%d)(%d)$')
  local is_plain = plain_digit == '1'
  kinds[code] = {
    is_new = drawn == '1', is_plain = is_plain, tier = tier, line = record.DEFAULT_LANE .. ':' .. tier,
    is_default_tier = tier == record.DEFAULT_TIER, width = is_plain and PLAIN_WIDTH or WIDTH,
  }
  return kinds[code]
end

local function due_at_ms(unit, delay_ms, at_ms)
  if delay_ms ~= '0' then
    return unit.now_ms + tonumber(delay_ms)
  end
  return tonumber(at_ms)
end

-- Store a job that asks for something, and return its verdict.
local function store(unit, key, kind, id, args, at)
  local due_ms = due_at_ms(unit, args[at + 5], args[at + 6])
  local few, n = {}, 0
  local function add(field, value, default)
    if value ~= default then
      few[n + 1], few[n + 2] = field, value
      n = n + 2
    end
  end
  add('expires_at_ms', numbers.text(due_at_ms(unit, args[at + 7], args[at + 8])), '0')
  add('max_stalls', args[at + 9], '')
  add('keep_ms', args[at + 10], '')
  add('options', args[at + 11], '')
  add('channels', args[at + 12], '')
  local job, fields = intake.new(unit, key, id, args[at + 2], args[at + 3], args[at + 4], kind.tier, few)
  if due_ms > unit.now_ms then
    moves.enter(unit, job, 'delayed', 'scheduled', 'scheduled', due_ms, unpack(fields))
    return 'scheduled'
  end
  moves.enter(unit, job, 'ready', 'queued', 'tails', unpack(fields))
  return 'queued'
end

-- Store a batch and return the verdicts. Plain jobs are counted once.
local function store_all(unit, args, at)
  local verdicts, n, plain_ones, stored = {}, 0, 0, 0
  while at <= #args do
    local id, kind = args[at], kinds[args[at + 1]] or read_kind(args[at + 1])
    local key = keys.job(unit.root, id)
    -- An id that was just drawn at random can't be there, and the look costs 2 µs.
    local verdict = not kind.is_new and intake.standing(unit, key, id, kind.is_plain and '' or args[at + 12])
    if not verdict then
      stored = stored + 1
      if kind.is_plain then
        verdict = plain.store(unit, key, id, kind, args[at + 2], args[at + 3])
        plain_ones = plain_ones + 1
      else
        verdict = store(unit, key, kind, id, args, at)
      end
    end
    n = n + 1
    verdicts[n] = verdict
    at = at + kind.width
  end
  if plain_ones > 0 then
    moves.count_stored(unit, plain_ones)
  end
  if stored > 0 then
    stats.tally(unit, 'enqueued', stored)
  end
  return verdicts
end

function functions.enqueue(roots, args)
  local client, number = unpack(args)
  local unit = unit.open(roots[1])
  -- Each slot holds the last number that came to it, and its answer.
  local memory = keys.calls(unit.root, client, SLOTS[number % 2])
  local seen = unit.try('GET', memory)
  local answered, answer = string.match(seen and not seen.err and seen or '', '^(%d+) (.*)$')
  if answered == number then
    return answer
  elseif answered and number + 0 < answered + 0 then
    return redis.error_reply('STALECALL ' .. number .. ' is older than ' .. answered)
  end
  answer = table.concat(store_all(unit, args, 3), ' ')
  unit.raw('SET', memory, number .. ' ' .. answer, 'PX', CALLS_TTL_MS)
  unit:close()
  return answer
end
