-- The gates of limits: who has a place in them, who waits in their lines, and when they are due. Nothing here moves a
-- job. What gives a job its place asks first and tells it after; what a call has changed is written at its end.

-- A gate's name is <limit>, a tab, <key>. Its value is ready, active, in line, due_ms, and since when it has these
-- places; of one with a rate also owed, rate, rate_ms and since when.
local VALUE, RATE = '^(%d+) (%d+) (%d+) (%d+) (%d+)(.*)$', '^ (%d+) (%d+) (%d+) (%d+)$'
local SPAN = 2 ^ 49 -- between the scores of two tiers in a line
local LOOKS = limits.GATE_LOOKS
local SLACK_MS = 3000 -- a key must not end before its bucket is full by a clock that was set back a little

local function read(unit, gate)
  local value = unit.call('GET', keys.gate(unit.root, gate.name))
  local ready, active, waiting, due_ms, placed_ms, rest = string.match(value or '', VALUE)
  if not ready then
    bucket.fill(gate)
    return
  end
  local owed, rate, rate_ms, at_ms = string.match(rest, RATE)
  bucket.pay(gate, tonumber(owed or 0), tonumber(rate or 0), tonumber(rate_ms or 0), unit.now_ms - (at_ms or 0))
  gate.ready, gate.active, gate.waiting, gate.due_ms = tonumber(ready), tonumber(active), tonumber(waiting),
    tonumber(due_ms)
  gate.value, gate.placed_ms, gate.had_line = value, placed_ms, gate.waiting > 0
end

-- The gates that the call has met, by name.
local function met(unit)
  if not unit.gates then
    unit.gates, unit.gate_names = {}, {}
  end
  return unit.gates
end

local function terms_of(unit, name)
  if strikes.has_line(name) then
    return strikes.terms(unit, name)
  end
  return terms.of(unit, terms.limit_of(name))
end

-- One gate as the call sees it.
function gates.of(unit, name)
  local known = met(unit)
  local gate = known[name]
  if not gate then
    gate = {
      name = name, terms = terms_of(unit, name), ready = 0, active = 0, waiting = 0,
      due_ms = 0, placed_ms = '0', value = false, had_line = false, looks = 0, head = false, is_head_known = false,
      owed = 0, rate = 0, rate_ms = 0, burst = 0,
    }
    read(unit, gate)
    if not gate.terms then
      terms.lack(unit, gate)
    end
    known[name] = gate
    unit.gate_names[#unit.gate_names + 1] = name
  end
  return gate
end

-- A job's gates, by their names, a line each.
local function all_of(unit, names)
  local found = {}
  for name in string.gmatch(names, '[^\n]+') do
    found[#found + 1] = gates.of(unit, name)
  end
  return found
end

-- Whether as many jobs have a place as its terms allow at once.
local function is_full(gate)
  local most = gate.terms.concurrency
  return most > 0 and gate.ready + gate.active >= most
end

-- Whether one more job may be ready.
function gates.has_room(gate)
  local its = gate.terms
  if not its then
    return true
  elseif its.is_window then
    return gate.ready < 1
  elseif its.is_closed or is_full(gate) then
    return false
  end
  return its.rate == 0 or gate.ready < bucket.tokens(gate)
end

local function lets_start(gate)
  local its = gate.terms
  if not its then
    return true
  elseif its.concurrency > 0 and gate.active >= its.concurrency then
    return false
  end
  return its.rate == 0 or bucket.tokens(gate) > 0
end

-- How long until time alone gives it room; nil: it never does.
local function room_in_ms(gate)
  if gates.has_room(gate) then
    return 0
  end
  if gate.terms.rate == 0 or is_full(gate) then
    return nil
  end
  return bucket.ms_until(gate, gate.ready + 1)
end

-- The first in a gate's line, false where nobody is there.
function gates.head(unit, gate)
  if not gate.is_head_known then
    gate.head, gate.is_head_known = false, true
    local first = gate.waiting > 0 and unit.call('ZRANGE', keys.line(unit.root, gate.name), '0', '0', 'WITHSCORES')
    if first and first[1] then
      gate.head = { id = first[1], score = tonumber(first[2]) }
    end
  end
  return gate.head
end

-- Where a job stands in a line, by its tier and the number it came with.
function gates.score(tier, number)
  return (9 - tier) * SPAN + number
end

-- The number of a job with that score.
function gates.number(tier, score)
  return score - (9 - tier) * SPAN
end

-- A new job's gates as they are stored, which is without the terms that it brings, and with its lane and tier where it
-- takes turns.
function gates.named(unit, said, lane, tier)
  local names = {}
  for limit, key, text in string.gmatch(said, '([^\t\n]+)\t([^\t\n]*)\t([^\t\n]*)') do
    names[#names + 1] = turns.limit(limit, lane, tier) .. '\t' .. key
    local lacking = text ~= '' and terms.bring(unit, limit, text)
    for at = 1, lacking and #lacking or 0 do
      lacking[at].terms = terms.of(unit, limit)
      bucket.fill(lacking[at])
    end
  end
  return names[1] and table.concat(names, '\n')
end

-- Forget a gate that nobody is in, with what it owes.
function gates.forget(unit, name)
  local gate = gates.of(unit, name)
  if gate.ready + gate.active + gate.waiting == 0 then
    unit.call('UNLINK', keys.gate(unit.root, name))
  end
end

-- Take a place in each of a job's gates, or return that in whose line it has to wait. In the line of the gate
-- `popped`, if that is said, it was the first.
function gates.admit(unit, names, tier, number, popped)
  local found = all_of(unit, names)
  for _, gate in ipairs(found) do
    if not gates.has_room(gate) then
      return gate.name
    end
    local head = gate.name ~= popped and gates.head(unit, gate)
    if head and head.score < gates.score(tier, number) then
      return gate.name
    end
  end
  for _, gate in ipairs(found) do
    gate.ready, gate.placed_ms = gate.ready + 1, unit.now_text
  end
end

-- Note that one of a key was ready and is no more: the next turn of the key is free where no other is.
local function note_turn(unit, gate)
  gate.looks = gate.looks + LOOKS
  if gate.ready == 0 then
    unit.turns_over = unit.turns_over or {}
    unit.turns_over[#unit.turns_over + 1] = gate.name
  end
end

-- Let a ready job start, or return the first of its gates that does not let it.
function gates.start(unit, names)
  local found = all_of(unit, names)
  for _, gate in ipairs(found) do
    if not lets_start(gate) then
      return gate.name
    end
  end
  for _, gate in ipairs(found) do
    gate.ready, gate.placed_ms = math.max(0, gate.ready - 1), unit.now_text
    if gate.terms and gate.terms.is_window then
      note_turn(unit, gate)
    else
      gate.active = gate.active + 1
      bucket.take(gate)
    end
  end
end

-- Note that an active job is ready again, in its places. It is ready beside the one of its key whose turn it is.
function gates.hold(unit, names)
  for _, gate in ipairs(all_of(unit, names)) do
    gate.active, gate.ready, gate.placed_ms = math.max(0, gate.active - 1), gate.ready + 1, unit.now_text
  end
end

-- Take the places of a job, which was ready or active, from it. What is active has no place in a window.
function gates.give_back(unit, names, state)
  local count = state == 'active' and 'active' or 'ready'
  for name in string.gmatch(names, '[^\n]+') do
    local is_window = turns.terms(name)
    if count == 'ready' or not is_window then
      local gate = gates.of(unit, name)
      gate[count], gate.placed_ms = math.max(0, gate[count] - 1), unit.now_text
      if is_window then
        note_turn(unit, gate)
      else
        gate.looks = gate.looks + LOOKS
      end
    end
  end
end

-- Note that a job waits in a gate's line, or that it has left it.
function gates.join(unit, name, tier, number, id)
  local gate = gates.of(unit, name)
  local score = numbers.text(gates.score(tier, number))
  gate.waiting = gate.waiting + unit.call('ZADD', keys.line(unit.root, name), score, id)
  gate.is_head_known = false
end

function gates.part(unit, name, id)
  local gate = gates.of(unit, name)
  gate.waiting = math.max(0, gate.waiting - unit.call('ZREM', keys.line(unit.root, name), id))
  gate.is_head_known = gate.is_head_known and not (gate.head and gate.head.id == id)
end

-- Take the first out of a gate's line; return its id and score, nil where nobody is there.
function gates.pop(unit, gate)
  local popped = gate.waiting > 0 and unit.call('ZPOPMIN', keys.line(unit.root, gate.name))
  if popped and popped[1] then
    gate.waiting, gate.is_head_known = gate.waiting - 1, false
    return popped[1], tonumber(popped[2])
  end
end

-- Note or strike out what is to be opened, and from when.
function gates.set_due(unit, name, due_ms)
  if due_ms then
    unit.call('ZADD', keys.gates(unit.root), numbers.text(due_ms), name)
  else
    unit.call('ZREM', keys.gates(unit.root), name)
  end
  met(unit)
  unit.has_new_due = true
end

-- Bring a gate back to the jobs that there are, if what was counted of them `may_trust` its places; return whether
-- anything was wrong. Its line is looked at if that was so, or if nobody else would.
function gates.recount(unit, name, ready, active, may_trust)
  local gate, root = gates.of(unit, name), unit.root
  local waiting = unit.call('ZCARD', keys.line(root, name))
  if not may_trust(gate) then
    ready, active = gate.ready, gate.active
  elseif turns.terms(name) then
    active = 0
  end
  local was_right = gate.ready == ready and gate.active == active and gate.waiting == waiting
  gate.ready, gate.active, gate.waiting, gate.is_head_known = ready, active, waiting, false
  gate.had_line = unit.call('ZSCORE', keys.lines(root), name) ~= false
  gate.due_ms = tonumber(unit.call('ZSCORE', keys.gates(root), name) or 0)
  was_right = was_right and gate.had_line == (waiting > 0)
  if not was_right or (gate.due_ms == 0 and gates.has_room(gate)) then
    gate.looks = LOOKS
  end
  return not was_right
end

local function value_of(unit, gate, due_ms)
  local value = numbers.text(gate.ready) .. ' ' .. numbers.text(gate.active) .. ' ' .. numbers.text(gate.waiting)
    .. ' ' .. numbers.text(due_ms) .. ' ' .. gate.placed_ms
  if gate.rate ~= 0 then
    value = value .. ' ' .. numbers.text(gate.owed) .. ' ' .. numbers.text(gate.rate) .. ' '
      .. numbers.text(gate.rate_ms) .. ' ' .. unit.now_text
  end
  return value
end

-- A gate that nobody is in ends with what it owes.
local function save(unit, gate, due_ms)
  local key, is_idle = keys.gate(unit.root, gate.name), gate.ready + gate.active + gate.waiting == 0
  if is_idle and gate.owed == 0 then
    if gate.value then
      unit.call('UNLINK', key)
    end
  elseif is_idle then
    unit.call('SET', key, value_of(unit, gate, 0), 'PX', numbers.text(bucket.ms_until(gate, gate.burst) + SLACK_MS))
  else
    local value = value_of(unit, gate, due_ms)
    if value ~= gate.value then
      unit.call('SET', key, value)
    end
  end
end

-- Write one gate; return when it is due, and for whom.
local function write(unit, gate)
  local in_ms = room_in_ms(gate)
  -- Who waits is of no account where only an end can give room.
  local head = in_ms and gates.head(unit, gate)
  local due_ms = head and unit.now_ms + in_ms or 0
  save(unit, gate, due_ms)
  if due_ms ~= gate.due_ms then
    gates.set_due(unit, gate.name, head and due_ms)
  end
  if gate.waiting > 0 and not gate.had_line then
    unit.call('ZADD', keys.lines(unit.root), '0', gate.name)
  elseif gate.waiting == 0 and gate.had_line then
    unit.call('ZREM', keys.lines(unit.root), gate.name)
  end
  if head then
    return due_ms, head.id
  end
end

-- Among what is delayed, one member stands for all gates: it is due when the first of them is. Return that time.
local function place_all(unit)
  local key = keys.delayed(unit.root)
  local first = unit.call('ZRANGE', keys.gates(unit.root), '0', '0', 'WITHSCORES')
  if first[1] then
    unit.call('ZADD', key, first[2], record.GATES)
  else
    unit.call('ZREM', key, record.GATES)
  end
  return first[1] and tonumber(first[2])
end

-- Write what the call has changed, and begin anew. Who consumes where the first gate is due is woken if that comes
-- before anything else was to.
function gates.write(unit, wakes)
  local known, ids = unit.gates, {}
  for _, name in ipairs(known and unit.gate_names or {}) do
    local due_ms, id = write(unit, known[name])
    if due_ms then
      ids[due_ms] = ids[due_ms] or id
    end
  end
  unit.gates = false
  if unit.has_new_due then
    unit.has_new_due = false
    local before = unit.call('ZRANGE', keys.delayed(unit.root), '0', '0', 'WITHSCORES')
    local due_ms = place_all(unit)
    if wakes and due_ms and ids[due_ms] and (not before[1] or due_ms < tonumber(before[2])) then
      wake.note(unit, record.lane(unit, ids[due_ms]))
    end
  end
end
