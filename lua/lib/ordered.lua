-- The lines of ready jobs in a queue that has had a job with a limit: who has waited in the line of a gate stands in
-- its tier by when it came, so each entry has a number, which is larger at the tail and negative at the head. What was
-- in line before the queue's first limit comes first, without one.
local FEW, MANY = '1', '100' -- numbers that a call takes at once, first and then

-- The next number at the tail.
function ordered.tail(unit)
  if unit.number == unit.last_number then
    local n = unit.last_number == 0 and FEW or MANY
    unit.last_number = unit.call('HINCRBY', keys.counts(unit.root), 'tail', n)
    unit.number = unit.last_number - n
  end
  unit.number = unit.number + 1
  return unit.number
end

-- The next number at the head.
function ordered.head(unit)
  return -unit.call('HINCRBY', keys.counts(unit.root), 'head', '1')
end

-- Note an entry of a line, which is <lane>:<tier>.
function ordered.note(unit, line, number, entry)
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

-- Note entries for the tail of a line.
function ordered.note_all(unit, line, entries)
  for _, entry in ipairs(entries) do
    ordered.note(unit, line, ordered.tail(unit), entry)
  end
end

-- What is noted is struck off as it is written.
function ordered.write(unit, call)
  for line, list in pairs(unit.ordered) do
    for first = 1, #list, 1000 do
      call('ZADD', keys.ordered(unit.root, line), unpack(list, first, math.min(first + 999, #list)))
    end
    wake.note(unit, string.sub(line, 1, -3)) -- without the tier
    unit.ordered[line] = nil
  end
end

-- Whether anything is left in a lane's lines from before the queue's first limit.
local function has_old(unit, words)
  return unit.call('EXISTS', unpack(words, 2, 11)) > 0
end

-- Take up to n entries of a lane, best tier first. Return the key of their line, the entries, and their numbers, none
-- of those that have none; nil where there are none.
function ordered.pop(unit, lane, n)
  local old, new = keys.pop_words(unit.root, lane), keys.ordered_words(unit.root, lane)
  local popped
  if has_old(unit, old) then
    for at = 2, 11 do
      popped = unit.call('LMPOP', '1', old[at], 'LEFT', 'COUNT', n)
      if popped then
        return popped[1], popped[2], {}
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
  local entries, its_numbers = {}, {}
  for i, pair in ipairs(popped[2]) do
    entries[i], its_numbers[i] = pair[1], tonumber(pair[2])
  end
  return popped[1], entries, its_numbers
end

-- Up to n entries of a line from a place on, those without numbers first.
function ordered.entries(unit, line, from, n)
  local list = keys.ready(unit.root, line)
  local entries = unit.call('LRANGE', list, from, from + n - 1)
  if #entries < n and settings.of(unit).has_gates then
    local place = math.max(0, from - unit.call('LLEN', list))
    for _, entry in ipairs(unit.call('ZRANGE', keys.ordered(unit.root, line), place, place + n - #entries - 1)) do
      entries[#entries + 1] = entry
    end
  end
  return entries
end
