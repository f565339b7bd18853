-- The jobs of one call: how they are said in words, and stored.

-- They are said in one of two forms. General: a job is id, kind, task, payload; then, unless it is plain, n and so
-- many names and values: what differs from the defaults. Compact, where all are plain, of one kind and one task: a tab
-- and the kind, the task, then id and payload of each. No id begins with a tab.
-- The kind is three digits: where the id is from, 1 for a plain job, and the tier. An id is the caller's (0), just
-- drawn at random (1), or the caller's and any record of it stays (2).
local PLAIN_WIDTH, WIDTH = 4, 5 -- the second without its pairs
local TAB = 9
local KIND, ALIKE = '^([012])([01])(%d)$', '^\t([012])(1)(%d)$'

local kinds, alike = {}, {} -- those that came, taken apart once: of one job, and of all in a compact form

-- The kind that a word says; nothing of its call was written yet if it is the first.
local function read_kind(known, form, args, at)
  local origin, plain_digit, tier = string.match(args[at] or '', form)
  if not origin then
    error(redis.error_reply('BADCALL word ' .. at .. ' is no kind of jobs'))
  end
  known[args[at]] = {
    is_new = origin == '1', stays = origin == '2', is_plain = plain_digit == '1', tier = tier,
    line = record.DEFAULT_LANE .. ':' .. tier, is_default_tier = tier == record.DEFAULT_TIER,
  }
  return known[args[at]]
end

-- How many words say the job that begins at `at`, in the general form.
function batch.width(args, at)
  local kind = kinds[args[at + 1]] or read_kind(kinds, KIND, args, at + 1)
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

-- What asks for a value as it comes.
local function as_it_comes(name)
  return function(_, asked, value)
    asked[name] = value
  end
end

asks.lane, asks.channel, asks.update = as_it_comes('lane'), as_it_comes('channel'), as_it_comes('update')
asks.gates = as_it_comes('gates')
asks.idempotency_key, asks.idempotency_ttl_ms = as_it_comes('key'), as_it_comes('key_ttl_ms')

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
  local names
  if asked.gates then
    asked.lane = intake.lane(unit, asked.lane, task)
    names = gates.named(unit, asked.gates, asked.lane, kind.tier)
  end
  if names then
    asked.few[#asked.few + 1], asked.few[#asked.few + 2] = 'gates', names
  end
  local job, fields = intake.new(unit, key, id, task, payload, asked.lane, kind.tier, asked.few)
  if asked.key then
    idempotency.note(unit, asked.key, id, asked.key_ttl_ms)
  end
  if asked.due_ms and asked.due_ms > unit.now_ms then
    return moves.enter(unit, job, 'delayed', 'scheduled', 'scheduled', asked.due_ms, unpack(fields))
  end
  job.gates_asked = names
  return moves.enter(unit, job, 'ready', 'queued', 'tails', unpack(fields))
end

-- Let a job meet one that may be there with its id, and return its verdict; nil where it is to be stored.
local function meet(unit, key, kind, id, task, payload, asked)
  if not (asked and asked.update) then
    return intake.standing(unit, key, id, asked and asked.channel or '', kind.stays)
  end
  local verdict = successors.update(unit, key, id, kind.tier, task, payload, asked)
  if verdict and asked.key then
    idempotency.note(unit, asked.key, id, asked.key_ttl_ms)
  end
  return verdict
end

-- Whether no id of the jobs from `at` to `last` is taken, short of those that were just drawn.
local function are_free(unit, args, at, last)
  local ids, n = {}, 0
  while at <= last do
    local kind = kinds[args[at + 1]] or read_kind(kinds, KIND, args, at + 1)
    if not kind.is_new then
      n = n + 1
      ids[n] = args[at]
    end
    at = at + (kind.is_plain and PLAIN_WIDTH or WIDTH + 2 * args[at + 4])
  end
  return intake.free_keys(unit, ids, 1, n, 1) ~= nil
end

-- Store jobs that are said in the general form.
local function store_each(unit, args, at, last)
  local verdicts, n, plain_ones, stored = {}, 0, 0, 0
  local is_free -- whether all ids are, once one came that the caller chose
  while at <= last do
    local id, kind = args[at], kinds[args[at + 1]] or read_kind(kinds, KIND, args, at + 1)
    local key, task, payload = keys.job(unit.root, id), args[at + 2], args[at + 3]
    local asked = not kind.is_plain and read_asked(unit, args, at + 4)
    local verdict = asked and asked.key and idempotency.standing(unit, asked.key)
    -- An id that was just drawn at random can't be there, and the look costs 2 us.
    if not verdict and not kind.is_new then
      if is_free == nil then
        is_free = are_free(unit, args, at, last)
      end
      verdict = not is_free and meet(unit, key, kind, id, task, payload, asked)
    end
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
  moves.count_stored(unit, plain_ones)
  return table.concat(verdicts, ' '), stored
end

-- Store jobs that are said in the compact form, of which some ids are taken.
local function store_free_ones(unit, kind, task, args, at, last)
  local verdicts, n, stored = {}, 0, 0
  for i = at, last, 2 do
    local id = args[i]
    local key = keys.job(unit.root, id)
    local verdict = intake.standing(unit, key, id, '', kind.stays)
    if not verdict then
      verdict = plain.store(unit, key, id, kind, task, args[i + 1])
      stored = stored + 1
    end
    n = n + 1
    verdicts[n] = verdict
  end
  return table.concat(verdicts, ' '), stored
end

-- Store jobs that are said in the compact form.
local function store_alike(unit, args, at, last)
  local kind, task = alike[args[at]] or read_kind(alike, ALIKE, args, at), args[at + 1]
  local first, count = at + 2, (last - at - 1) / 2
  if count < 1 or count % 1 ~= 0 then
    error(redis.error_reply('BADCALL ' .. last .. ' words are no ids and payloads'))
  end
  local free_keys = not kind.is_new and intake.free_keys(unit, args, first, last, 2)
  local verdicts, stored
  if free_keys or kind.is_new then
    plain.store_alike(unit, kind, task, args, first, last, free_keys)
    verdicts, stored = string.rep('queued ', count - 1) .. 'queued', count
  else
    verdicts, stored = store_free_ones(unit, kind, task, args, first, last)
  end
  moves.count_stored(unit, stored)
  return verdicts, stored
end

-- The value that a job in the general form says by a name.
local function said(args, at, name)
  for i = at + 5, at + 4 + 2 * args[at + 4], 2 do
    if args[i] == name then
      return args[i + 1]
    end
  end
end

-- Whether one more job would wait after this request.
local function would_add(unit, kind, id, key_of_caller, has_update)
  if key_of_caller and idempotency.standing(unit, key_of_caller) then
    return false
  end
  local job = record.load(unit, id)
  if not job or (has_update and job.state == 'completed') then
    return true
  elseif has_update and job.state == 'active' then
    return not job.has_next
  end
  return (job.state == 'failed' or job.state == 'cancelled') and (has_update or not kind.stays)
end

-- How many more jobs would wait after this call.
local function count_added(unit, args, at, last, is_alike)
  local known, n = {}, 0
  local common = is_alike and (alike[args[at]] or read_kind(alike, ALIKE, args, at))
  at = is_alike and at + 2 or at
  while at <= last do
    local kind = common or kinds[args[at + 1]] or read_kind(kinds, KIND, args, at + 1)
    local asks_more = not kind.is_plain
    local key_of_caller = asks_more and said(args, at, 'idempotency_key')
    local is_new = not known[args[at]] and not (key_of_caller and known['\t' .. key_of_caller])
    if is_new and would_add(unit, kind, args[at], key_of_caller, asks_more and said(args, at, 'update')) then
      n, known[args[at]] = n + 1, true
      if key_of_caller then
        known['\t' .. key_of_caller] = true
      end
    end
    at = at + (is_alike and 2 or batch.width(args, at))
  end
  return n
end

-- See that a call does not bring the jobs that wait over the number that its queue takes. One that `may_pass` that is
-- let in while fewer wait, since it can't be made any smaller.
local function check_length(unit, most, args, at, last, is_alike, may_pass)
  local waiting = 0
  for _, n in ipairs(unit.call('HMGET', keys.counts(unit.root), 'queued', 'scheduled', 'retrying', 'blocked')) do
    waiting = waiting + numbers.read(n, 0)
  end
  if waiting + last - at + 1 > most and not (may_pass and waiting < most) then
    local added = count_added(unit, args, at, last, is_alike)
    if added > 0 and waiting + added > most then
      error(redis.error_reply('QUEUEFULL ' .. numbers.text(most) .. ' ' .. numbers.text(waiting) .. ' ' .. unit.root))
    end
  end
end

-- Store the jobs from `at` on. Return their verdicts, a blank between two, and how many were stored. Jobs that their
-- sender can't send in smaller calls `may_pass` the number that the queue takes, where it is not reached.
function batch.store(unit, args, at, may_pass)
  local last = #args
  if at > last then
    return '', 0
  end
  local is_alike = string.byte(args[at]) == TAB
  local most = settings.of(unit).max_length
  if most > 0 then
    check_length(unit, most, args, at, last, is_alike, may_pass)
  end
  local verdicts, stored = (is_alike and store_alike or store_each)(unit, args, at, last)
  if stored > 0 then
    stats.tally(unit, 'enqueued', stored)
  end
  return verdicts, stored
end
