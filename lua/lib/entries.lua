-- The lines of ready jobs, by lane and tier: entries that a call notes are written at its end, and popped by claims.
-- In a queue that has had a job with a limit each has a number, since who has waited in the line of a gate stands by
-- when it came: it is larger at the tail, and negative at the head. What was in line before the queue's first limit has
-- none, and comes before all that have.
local NOTHING = {}
local FRONT = 2 ^ 48
local BEFORE = 2 ^ 40 -- numbers before those at the tail, for entries that have none and are taken from their line
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
    unit.call('HINCRBY', keys.counts(unit.root), 'tail', numbers.text(BEFORE))
  end
end

-- The next number of those that stood in line before there were any: behind the heads, before the tails.
function entries.before(unit)
  return unit.call('HINCRBY', keys.counts(unit.root), 'before', '1')
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

local function pop_ordered(unit, lane, n)
  local old, new = keys.pop_words(unit.root, lane), keys.ordered_words(unit.root, lane)
  local popped
  if has_old(unit, old) then
    for at = 2, 11 do
      popped = unit.call('LMPOP', '1', old[at], 'LEFT', 'COUNT', n)
      if popped then
        return popped[1], popped[2], NOTHING
      end
      popped = unit.call('ZMPOP', '1', new[at], 'MIN', 'COUNT', n)
      if popped then
        break
      end
    end
  else
    new[#new] = n
    popped = unit.call('ZMPOP', unpack(new))
  end
  if not popped then
    return nil
  end
  local found, its_numbers = {}, {}
  for i, pair in ipairs(popped[2]) do
    found[i], its_numbers[i] = pair[1], tonumber(pair[2])
  end
  return popped[1], found, its_numbers
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

-- Up to n entries of a line from a place on, those without numbers first.
function entries.of(unit, line, from, n)
  local list = keys.ready(unit.root, line)
  local found = unit.call('LRANGE', list, from, from + n - 1)
  if #found < n and settings.of(unit).has_gates then
    local place = math.max(0, from - unit.call('LLEN', list))
    for _, entry in ipairs(unit.call('ZRANGE', keys.ordered(unit.root, line), place, place + n - #found - 1)) do
      found[#found + 1] = entry
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
