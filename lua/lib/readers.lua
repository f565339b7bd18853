-- Named readers of a queue's events, and how far each has come: behind an entry, and at an event that may lie within
-- the next one. While there is a reader, what one of them has not acknowledged is kept, up to a cap.
local TRIMMED, LIMIT, TTL_MS = limits.EVENTS_TRIMMED_A_CALL, limits.READERS_LIMIT, limits.READER_TTL_MS
local FIRST = '0-0'
local is_after, is_larger = events.is_after, events.is_larger

-- The entry, the event and the time that are kept of a reader; of rubbish those of one that never was.
local function read(word)
  local id, n, at_ms = string.match(word or '', '^(%d+%-%d+) (%d+) (%d+)$')
  return id or FIRST, numbers.digits(n) or '0', numbers.read(at_ms, 0)
end

local function fields(entry)
  local found = {}
  for i = 1, #entry[2], 2 do
    found[entry[2][i]] = entry[2][i + 1]
  end
  return numbers.read(found.n, 0), found.events or ''
end

-- The number of the last event before an entry.
local function before_all_of(entry)
  local n, lines = fields(entry)
  local _, breaks = string.gsub(lines, '\n', '')
  return math.max(0, n - breaks - 1)
end

-- Where a reader stands that has seen the entry `id`, of that up to the event `number` if it is not 0. One that
-- names what is not there yet has seen all there is; `before` is an id between that entry and the one before.
local function place(unit, id, before, number)
  local entry, first = events.last_up_to(unit, id)
  if not entry then
    return FIRST, first and before_all_of(first) or readers.told(unit)
  end
  local n = fields(entry)
  if entry[1] == id and number > 0 and number < n then
    return before, number
  end
  return entry[1], n
end

-- How many events the queue has had.
function readers.told(unit)
  return numbers.read(unit.call('HGET', keys.counts(unit.root), 'events'), 0)
end

-- Name, entry, event and time of each, flat.
function readers.all(unit)
  local found, words = {}, unit.call('HGETALL', keys.readers(unit.root))
  for i = 1, #words, 2 do
    local n = #found
    local id, number, at_ms = read(words[i + 1])
    found[n + 1], found[n + 2], found[n + 3], found[n + 4] = words[i], id, number, numbers.text(at_ms)
  end
  return found
end

-- Trim what all have acknowledged, or all that is over where there is no reader, a bounded piece a call.
function readers.trim(unit)
  local key = keys.events(unit.root)
  local excess = unit.call('XLEN', key) - tonumber(settings.of(unit).events)
  if excess <= 0 then
    return
  end
  local least
  for _, word in ipairs(unit.call('HVALS', keys.readers(unit.root))) do
    local id = read(word)
    if not least or is_after(least, id) then
      least = id
    end
  end
  excess = numbers.text(math.min(excess, TRIMMED))
  if least then
    unit.call('XTRIM', key, 'MINID', '~', least, 'LIMIT', excess)
  else
    unit.call('XTRIM', key, 'MAXLEN', '~', settings.of(unit).events, 'LIMIT', excess)
  end
end

-- Note how far a reader has come; false where there are too many.
function readers.acknowledge(unit, name, id, before, number)
  local key = keys.readers(unit.root)
  local word = unit.call('HGET', key, name)
  if not word and unit.call('HLEN', key) >= LIMIT then
    return false
  end
  local known_id, known_n = read(word)
  local n
  id, n = place(unit, id, before, number)
  n = numbers.text(n)
  if is_after(known_id, id) or (known_id == id and is_larger(known_n, n)) then
    id, n = known_id, known_n
  end
  unit.call('HSET', key, name, id .. ' ' .. n .. ' ' .. unit.now_text)
  settings.set(unit, 'has_readers', '1')
  readers.trim(unit)
  return true
end

-- Without readers nothing is held back any more.
local function let_go(unit)
  if unit.call('HLEN', keys.readers(unit.root)) == 0 then
    unit.call('HDEL', keys.config(unit.root), 'has_readers')
  end
  readers.trim(unit)
end

-- Drop a reader; return whether there was one.
function readers.forget(unit, name)
  local was_there = unit.call('HDEL', keys.readers(unit.root), name) == 1
  if was_there then
    let_go(unit)
  end
  return was_there
end

-- Drop those that have been silent for long.
function readers.prune(unit)
  if not settings.of(unit).has_readers then
    return
  end
  local found = readers.all(unit)
  for i = 1, #found, 4 do
    if unit.now_ms - tonumber(found[i + 3]) >= TTL_MS then
      unit.call('HDEL', keys.readers(unit.root), found[i])
    end
  end
  let_go(unit)
end
