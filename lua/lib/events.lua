-- What happened, for those who watch the queue.
local EVENTS_AN_ENTRY = limits.EVENTS_AN_ENTRY

-- What an event says behind kind, id and task. It is made apart since many events of a call have it in common: to join
-- all fields of each costs 2,000 instructions more.
function events.tail(epoch, incarnation, wait_ms, run_ms, detail)
  return '\t' .. epoch .. '\t' .. incarnation .. '\t' .. wait_ms .. '\t' .. run_ms .. '\t' .. detail
end

events.NEW = events.tail('0', '', '', '', '')

-- A line, its fields tab-separated: neither ids nor task names hold control characters.
function events.add(unit, kind, id, task, tail)
  local n = unit.event_count + 1
  unit.event_count = n
  unit.events[n] = kind .. '\t' .. id .. '\t' .. task .. tail
end

-- Join the lines that are in no entry yet. An entry is its text, and the number of its last line in this call.
local function join(unit)
  local entries, count = unit.event_entries, unit.event_count
  local n = #entries
  for first = unit.event_first, count, EVENTS_AN_ENTRY do
    local last = math.min(first + EVENTS_AN_ENTRY - 1, count)
    entries[n + 1], entries[n + 2] = table.concat(unit.events, '\n', first, last), last
    n = n + 2
  end
  unit.event_first = count + 1
  return entries
end

-- The lines of jobs of one task whose ids are every second word, and of which all else is the same too: they are joined
-- with what is between two ids, for a line by itself would cost 1,000 instructions more.
function events.add_alike(unit, kind, task, words, first, last, tail)
  local entries, number = join(unit), unit.event_count
  local start, rest, ids, n = kind .. '\t', '\t' .. task .. tail, {}, 0
  local between = rest .. '\n' .. start
  for i = first, last, 2 do
    n = n + 1
    ids[n] = words[i]
    if n == EVENTS_AN_ENTRY or i + 2 > last then
      number = number + n
      local at = #entries
      entries[at + 1], entries[at + 2] = start .. table.concat(ids, between, 1, n) .. rest, number
      n = 0
    end
  end
  unit.event_count, unit.event_first = number, number + 1
end

-- Several events an entry: one entry each would cost 3 µs a transition. `n` counts all events up to the
-- entry, so that a reader knows how many it missed.
function events.write(unit, call)
  local key, count = keys.events(unit.root), unit.event_count
  if count == 0 then
    return
  end
  local limit = settings.of(unit).events
  if not unit.total then
    unit.total = call('HINCRBY', keys.counts(unit.root), 'events', numbers.text(count)) - count
  end
  local entries = join(unit)
  for i = unit.entry_first, #entries, 2 do
    local number = numbers.text(unit.total + entries[i + 1])
    call('XADD', key, 'MAXLEN', '~', limit, '*', 'n', number, 'events', entries[i])
    unit.entry_first = i + 2
  end
end
