-- The jobs of one call: how they are said in words, and stored.

-- A job is id, kind, task, payload; then, unless it is plain, n and so many names and values: what differs from the
-- defaults. The kind is three digits: 1 for an id that was just drawn at random, 1 for a plain job, and the tier.
local PLAIN_WIDTH, WIDTH = 4, 5 -- the second without its pairs

local kinds = {} -- those that came, taken apart once

local function read_kind(code)
  local drawn, plain_digit, tier = string.match(code, '^(%d)(%d)(%d)$')
  local is_plain = plain_digit == '1'
  kinds[code] = {
    is_new = drawn == '1', is_plain = is_plain, tier = tier, line = record.DEFAULT_LANE .. ':' .. tier,
    is_default_tier = tier == record.DEFAULT_TIER,
  }
  return kinds[code]
end

-- How many words say the job that begins at `at`.
function batch.width(args, at)
  local kind = kinds[args[at + 1]] or read_kind(args[at + 1])
  return kind.is_plain and PLAIN_WIDTH or WIDTH + 2 * args[at + 4]
end

-- What a name asks for. Any other is a field of the record as it is, and known to who reads it.
local asks = {}

function asks.delay_ms(unit, asked, value)
  asked.due_ms = unit.now_ms + tonumber(value)
end

function asks.run_at_ms(_, asked, value)
  asked.due_ms = asked.due_ms or tonumber(value)
end

function asks.expires_in_ms(unit, asked, value)
  asked.expires_at_ms = numbers.text(unit.now_ms + tonumber(value))
end

function asks.expires_at_ms(_, asked, value)
  asked.expires_at_ms = asked.expires_at_ms or value
end

function asks.lane(_, asked, value)
  asked.lane = value
end

function asks.channel(_, asked, value)
  asked.channel = value
end

-- Return what a job asks for whose n is at `at`, and the fields that its record gets by that.
local function read_asked(unit, args, at)
  local asked, few, n = { lane = record.DEFAULT_LANE, channel = '' }, {}, 0
  local function remember(field, value)
    few[n + 1], few[n + 2] = field, value
    n = n + 2
  end
  for i = at + 1, at + 2 * args[at], 2 do
    local ask = asks[args[i]]
    if ask then
      ask(unit, asked, args[i + 1])
    else
      remember(args[i], args[i + 1])
    end
  end
  if asked.expires_at_ms then
    remember('expires_at_ms', asked.expires_at_ms)
  end
  if asked.channel ~= '' then
    remember('channels', asked.channel)
  end
  asked.few = few
  return asked
end

-- Store a job that asks for something, and return its verdict.
local function store(unit, key, kind, id, task, payload, asked)
  local job, fields = intake.new(unit, key, id, task, payload, asked.lane, kind.tier, asked.few)
  if asked.due_ms and asked.due_ms > unit.now_ms then
    moves.enter(unit, job, 'delayed', 'scheduled', 'scheduled', asked.due_ms, unpack(fields))
    return 'scheduled'
  end
  moves.enter(unit, job, 'ready', 'queued', 'tails', unpack(fields))
  return 'queued'
end

-- Store the jobs from `at` on and return the verdicts. Plain jobs are counted once.
function batch.store(unit, args, at)
  local verdicts, n, plain_ones, stored = {}, 0, 0, 0
  while at <= #args do
    local id, kind = args[at], kinds[args[at + 1]] or read_kind(args[at + 1])
    local key, task, payload = keys.job(unit.root, id), args[at + 2], args[at + 3]
    local asked = not kind.is_plain and read_asked(unit, args, at + 4)
    -- An id that was just drawn at random can't be there, and the look costs 2 µs.
    local verdict = not kind.is_new and intake.standing(unit, key, id, asked and asked.channel or '')
    if not verdict then
      stored = stored + 1
      if asked then
        verdict = store(unit, key, kind, id, task, payload, asked)
      else
        verdict = plain.store(unit, key, id, kind, task, payload)
        plain_ones = plain_ones + 1
      end
    end
    n = n + 1
    verdicts[n] = verdict
    at = at + (asked and WIDTH + 2 * args[at + 4] or PLAIN_WIDTH)
  end
  if plain_ones > 0 then
    moves.count_stored(unit, plain_ones)
  end
  if stored > 0 then
    stats.tally(unit, 'enqueued', stored)
  end
  return verdicts
end
