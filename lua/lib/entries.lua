-- The lines of ready jobs, by lane and tier: entries that a call notes are written at its end, and popped by claims.
-- In a queue that has had a job with a limit each has a number, since who has waited in the line of a gate stands by
-- when it came: it is larger at the tail, and negative at the head. What was in line before the queue's first limit or
-- strike has none. It comes behind the heads, and those that a strike took from among it, and before the tails.
local NOTHING = {}
local FRONT = 2 ^ 48
local OLD = 2 ^ 40 -- the last number of what comes before entries without any
local FEW, MANY = '1', '64' -- numbers that a call takes at once, first and then

-- Note a word in a list of the unit's, by what and by whose: an entry for the 'tails' or 'heads' of a line, which is
-- <lane>:<tier>.
local function note(unit, what, whose, word)
  local lists = unit[what]
  local list = lists and lists[whose]
  if list then
    list[#list + 1] = word
  elseif lists then
    lists[whose] = { word }
  else
    unit[what] = { [whose] = { word } }
  end
end

entries.note = note

-- Note entries of new jobs for the tail of a line, whose ids are every second word.
function entries.note_alike(unit, line, words, first, last)
  local start = unit.generation .. ':'
  note(unit, 'tails', line, start .. words[first])
  local list = unit.tails[line]
  local n = #list
  for i = first + 2, last, 2 do
    n = n + 1
    list[n] = start .. words[i]
  end
end

-- Have entries numbers from now on.
function entries.begin_numbers(unit)
  if not settings.of(unit).has_gates then
    settings.set(unit, 'has_gates', '1')
    unit.call('HINCRBY', keys.counts(unit.root), 'tail', numbers.text(OLD))
  end
end

-- The next number of an entry that has none, and is taken from the head of its line.
function entries.old(unit)
  return unit.call('HINCRBY', keys.counts(unit.root), 'old', '1')
end

-- How many entries of a line have numbers and come before those that have none.
function entries.early(unit, line)
  return unit.call('ZCOUNT', keys.ordered(unit.root, line), '-inf', numbers.text(OLD))
end

-- The next number before all heads; these rise, as the jobs do that were taken from the head one after the other.
function entries.front(unit)
  return unit.call('HINCRBY', keys.counts(unit.root), 'front', '1') - FRONT
end

-- The next number at the tail.
function entries.tail(unit)
  if unit.number == unit.last_number then
    local n = unit.last_number and MANY or FEW
    unit.last_number = unit.call('HINCRBY', keys.counts(unit.root), 'tail', n)
    unit.number = unit.last_number - n
  end
  unit.number = unit.number + 1
  return unit.number
end

-- The next number at the head.
function entries.head(unit)
  return -unit.call('HINCRBY', keys.counts(unit.root), 'head', '1')
end

-- Note an entry of a line at a number.
function entries.place(unit, line, number, entry)
  local lists = unit.ordered
  if not lists then
    lists = {}
    unit.ordered = lists
  end
  local list = lists[line]
  if not list then
    list = {}
    lists[line] = list
  end
  local n = #list
  list[n + 1], list[n + 2] = numbers.text(number), entry
end

-- The same, written at once: a claim goes on with it.
function entries.put(unit, line, number, entry)
  unit.call('ZADD', keys.ordered(unit.root, line), numbers.text(number), entry)
  wake.note(unit, string.sub(line, 1, -3))
end

-- What the call gathered is struck off as it is written, so that it can be written on after an error.
local function push(unit, call, command, lists)
  for line, list in pairs(lists) do
    local key = keys.ready(unit.root, line)
    for first = 1, #list, 1000 do
      -- Only the first piece of a list can meet a strange key.
      call(command, key, unpack(list, first, math.min(first + 999, #list)))
    end
    wake.note(unit, string.sub(line, 1, -3)) -- without the tier
    lists[line] = nil
  end
end

local function place_tails(unit)
  for line, list in pairs(unit.tails) do
    for _, entry in ipairs(list) do
      entries.place(unit, line, entries.tail(unit), entry)
    end
    unit.tails[line] = nil
  end
end

local function write_placed(unit, call)
  for line, list in pairs(unit.ordered) do
    for first = 1, #list, 1000 do
      call('ZADD', keys.ordered(unit.root, line), unpack(list, first, math.min(first + 999, #list)))
    end
    wake.note(unit, string.sub(line, 1, -3))
    unit.ordered[line] = nil
  end
end

-- Write what the call has noted.
function entries.write(unit, call)
  if unit.tails then
    if (unit.settings or settings.of(unit)).has_gates then
      place_tails(unit)
    end
    push(unit, call, 'RPUSH', unit.tails)
  end
  if unit.heads then
    push(unit, call, 'LPUSH', unit.heads)
  end
  if unit.ordered then
    write_placed(unit, call)
  end
end

-- Whether anything is left in a lane's lines from before the queue's first limit.
local function has_old(unit, words)
  return unit.call('EXISTS', unpack(words, 2, 11)) > 0
end

-- Take those of a line with numbers that come before those without.
local function pop_early(unit, key, n)
  local flat = unit.call(
    'ZRANGE', key, '-inf', numbers.text(OLD), 'BYSCORE', 'LIMIT', '0', n, 'WITHSCORES'
  )
  local found, its_numbers = {}, {}
  for i = 1, #flat, 2 do
    found[#found + 1], its_numbers[#its_numbers + 1] = flat[i], tonumber(flat[i + 1])
  end
  if found[1] then
    unit.call('ZREM', key, unpack(found))
    return key, found, its_numbers
  end
end

local function read_popped(popped)
  local found, its_numbers = {}, {}
  for i, pair in ipairs(popped[2]) do
    found[i], its_numbers[i] = pair[1], tonumber(pair[2])
  end
  return popped[1], found, its_numbers
end

-- Take up to n entries of one line, which are in two keys.
local function pop_keys(unit, old, new, n)
  local key, found, its_numbers = pop_early(unit, new, n)
  if key then
    return key, found, its_numbers
  end
  local popped = unit.call('LMPOP', '1', old, 'LEFT', 'COUNT', n)
  if popped then
    return popped[1], popped[2], NOTHING
  end
  popped = unit.call('ZMPOP', '1', new, 'MIN', 'COUNT', n)
  if popped then
    return read_popped(popped)
  end
end

function entries.pop_line(unit, line, n)
  return pop_keys(unit, keys.ready(unit.root, line), keys.ordered(unit.root, line), n)
end

-- The same from a lane that has entries without numbers, too.
local function pop_mixed(unit, old, new, n)
  for at = 2, 11 do
    local key, found, its_numbers = pop_keys(unit, old[at], new[at], n)
    if key then
      return key, found, its_numbers
    end
  end
end

local function pop_ordered(unit, lane, n)
  local old, new = keys.pop_words(unit.root, lane), keys.ordered_words(unit.root, lane)
  if has_old(unit, old) then
    return pop_mixed(unit, old, new, n)
  end
  new[#new] = n
  local popped = unit.call('ZMPOP', unpack(new))
  if popped then
    return read_popped(popped)
  end
end

-- Take up to the last of `words` entries from a lane, best tier first: the key of their line, the entries, and the
-- numbers of those that have any. nil where there are none.
function entries.pop(unit, words, lane)
  if (unit.settings or settings.of(unit)).has_gates then
    return pop_ordered(unit, lane, words[#words])
  end
  local popped = unit.try('LMPOP', unpack(words))
  if popped and popped.err then
    popped = unit.call('LMPOP', unpack(words))
  end
  if popped then
    return popped[1], popped[2], NOTHING
  end
end

-- Give the entries behind one back to the head of the line that they were popped from.
function entries.push_back(unit, line, popped, its_numbers, behind)
  for back = #popped, behind + 1, -1 do
    if its_numbers[back] then
      unit.call('ZADD', line, numbers.text(its_numbers[back]), popped[back])
    else
      unit.call('LPUSH', line, popped[back])
    end
  end
end

-- Give an entry back to the tail of the line whose key that is, where it holds nobody up.
function entries.push_behind(unit, key, entry)
  if settings.of(unit).has_gates then
    local line = string.match(key, '}:%l+:(.*)$')
    unit.call('ZADD', keys.ordered(unit.root, line), numbers.text(entries.tail(unit)), entry)
  else
    unit.call('RPUSH', key, entry)
  end
end

-- Up to n entries of a line from a place on.
function entries.of(unit, line, from, n)
  local list, ordered = keys.ready(unit.root, line), keys.ordered(unit.root, line)
  if not settings.of(unit).has_gates then
    return unit.call('LRANGE', list, from, from + n - 1)
  end
  local early, length, found = entries.early(unit, line), unit.call('LLEN', list), {}
  -- A piece of the line is a key, where it begins in that, and how many places are before it and in it.
  for _, piece in ipairs({
    { 'ZRANGE', ordered, 0, 0, early }, { 'LRANGE', list, 0, early, length },
    { 'ZRANGE', ordered, early, early + length, math.huge },
  }) do
    local command, key, first, places, size = unpack(piece)
    local at = from + #found - places
    local wanted = math.min(n - #found, size - at)
    if at >= 0 and wanted > 0 then
      for _, entry in ipairs(unit.call(command, key, first + at, first + at + wanted - 1)) do
        found[#found + 1] = entry
      end
    end
  end
  return found
end

-- How many entries the key of a line has, with numbers or without.
function entries.size(unit, key)
  local _, kind = keys.parts(key)
  return unit.call(kind == 'ordered' and 'ZCARD' or 'LLEN', key)
end

-- Up to n of its entries before the last `offset`.
function entries.from_tail(unit, key, offset, n)
  local _, kind = keys.parts(key)
  return unit.call(kind == 'ordered' and 'ZRANGE' or 'LRANGE', key, -offset - n, -offset - 1)
end

-- Whether an entry stands for a job that is ready: one that was cancelled leaves its own in a line without numbers.
function entries.stands(unit, entry)
  local its_generation, id = string.match(entry, '^(%d+):(.*)$')
  local state, _, _, generation = record.parts(id and unit.call('HGET', keys.job(unit.root, id), 'head'))
  return state == 'queued' and generation == its_generation
end
