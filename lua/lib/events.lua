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

-- The lines of jobs whose ids are every second word, of which all else is the same: `tail` has the task too.
function events.add_alike(unit, kind, words, first, last, tail)
  local lines, n, start = unit.events, unit.event_count, kind .. '\t'
  for i = first, last, 2 do
    n = n + 1
    lines[n] = start .. words[i] .. tail
  end
  unit.event_count = n
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
  for first = unit.event_first, count, EVENTS_AN_ENTRY do
    local last = math.min(first + EVENTS_AN_ENTRY - 1, count)
    local lines = table.concat(unit.events, '\n', first, last)
    call('XADD', key, 'MAXLEN', '~', limit, '*', 'n', numbers.text(unit.total + last), 'events', lines)
    unit.event_first = last + 1
  end
end
