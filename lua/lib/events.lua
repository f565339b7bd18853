-- What happened, for those who watch the queue.
local EVENTS_AN_ENTRY = limits.EVENTS_AN_ENTRY

-- What an event says behind kind, id and task. It is made apart since many events of a call have it in common: to join
-- all fields of each costs 2,000 instructions more.
function events.tail(epoch, incarnation, wait_ms, run_ms, detail)
  return '\t' .. epoch .. '\t' .. incarnation .. '\t' .. wait_ms .. '\t' .. run_ms .. '\t' .. detail
end

events.NEW = events.tail('0', '', '', '', '')

-- The same of a new job that waits for its time.
function events.of_new(due_ms)
  return events.tail('0', '', '', '', numbers.text(due_ms))
end

-- A line, its fields tab-separated: neither ids nor task names hold control characters.
function events.add(unit, kind, id, task, tail)
  local n = unit.event_count + 1
  unit.event_count = n
  local line = kind .. '\t' .. id .. '\t' .. task .. tail
  if n > 1 then
    unit.events[n] = line
  else
    unit.events = { line }
  end
end

-- The lines of jobs of one task whose ids are every second word, and of which all else is the same too: what is between
-- two ids joins them, for a line by itself would cost 1,000 instructions more. They come before all that are added one
-- by one. An entry is its text, and how many events there are up to its end.
function events.add_alike(unit, kind, task, words, first, last, tail)
  local entries, ids, n = unit.entries or {}, {}, 0
  local at = #entries
  local number, start, rest = entries[at] or 0, kind .. '\t', '\t' .. task .. tail
  local between = rest .. '\n' .. start
  for i = first, last, 2 do
    n = n + 1
    ids[n] = words[i]
    if n == EVENTS_AN_ENTRY or i + 2 > last then
      number = number + n
      entries[at + 1], entries[at + 2] = start .. table.concat(ids, between, 1, n) .. rest, number
      at, n = at + 2, 0
    end
  end
  unit.entries = entries
end

-- Several events an entry: one entry each would cost 3 us a transition. `n` counts all events up to the
-- entry, so that a reader knows how many it missed.
local function write_entry(unit, call, text, number)
  local limit = (unit.settings or settings.of(unit)).events_now
  local key, n = keys.events(unit.root), numbers.text(unit.total + number)
  call('XADD', key, 'MAXLEN', '~', limit, '*', 'n', n, 'events', text)
end

local function write_entries(unit, call, entries)
  for i = 1, #entries, 2 do
    if entries[i] then
      write_entry(unit, call, entries[i], entries[i + 1])
      entries[i] = false
    end
  end
end

function events.write(unit, call)
  local entries, count = unit.entries, unit.event_count
  local before = entries and entries[#entries] or 0
  if before + count == 0 then
    return
  end
  if not unit.total then
    unit.total = call('HINCRBY', keys.counts(unit.root), 'events', numbers.text(before + count)) - before - count
  end
  if entries then
    write_entries(unit, call, entries)
  end
  for first = unit.event_first, count, EVENTS_AN_ENTRY do
    local last = math.min(first + EVENTS_AN_ENTRY - 1, count)
    write_entry(unit, call, table.concat(unit.events, '\n', first, last), before + last)
    unit.event_first = last + 1
  end
end

-- Ids of entries are larger than Lua's numbers are exact; ours have no leading zeros.
function events.is_larger(a, b)
  return #a > #b or (#a == #b and a > b)
end

function events.is_after(a, b)
  local a_ms, a_seq = string.match(a, '^(%d+)-(%d+)$')
  local b_ms, b_seq = string.match(b, '^(%d+)-(%d+)$')
  return events.is_larger(a_ms, b_ms) or (a_ms == b_ms and events.is_larger(a_seq, b_seq))
end

-- The first entry that is kept, nil without one.
function events.first(unit)
  return unit.call('XRANGE', keys.events(unit.root), '-', '+', 'COUNT', 1)[1]
end

-- The last entry up to an id and the first of all, nil for what is not there. Where there is none up to an id,
-- XREVRANGE would look for it through the whole stream.
function events.last_up_to(unit, id)
  local first = events.first(unit)
  if not first or events.is_after(first[1], id) then
    return nil, first
  end
  return unit.call('XREVRANGE', keys.events(unit.root), id, '-', 'COUNT', 1)[1], first
end
