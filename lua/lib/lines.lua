-- The lines of gates: who gets the places that came free, and what follows from new terms. Gates that got room in a
-- call are opened before it closes; what its bounds cut off is due at once, and opened by the next claim.
local LOOKS = limits.GATES_LOOKS

-- What is due of a limit with new terms is the rest of its gates: a tab, and the name of the last that was opened.
local REST = '^\t(([^\t]*).*)$'

-- Let one that was popped from the line of a gate have its place, if it stands for a job that waited there.
local function admit(unit, name, id, score)
  local job = record.load_blocked(unit, id)
  if not (job and job.state == 'blocked' and parking.line(unit, job) == name) then
    finish.fail_headless(unit, id, 'blocked')
    record.erase_lost(unit, id)
    return
  end
  job.popped = name
  if record.is_overdue(unit, job) then
    finish.fail(unit, job, 'expired', '', '', '')
  else
    moves.move(unit, job, 'ready', 'queued', '', moves.ADMITTED, gates.number(job.tier, score))
  end
end

-- Let the first of a line take their places; return how many were looked at.
local function open(unit, name, looks)
  local gate = gates.of(unit, name)
  for look = 1, looks do
    if not gates.has_room(gate) then
      return look - 1
    end
    local id, score = gates.pop(unit, gate)
    if not id then
      return look - 1
    end
    admit(unit, name, id, score)
  end
  return looks
end

-- Open the gates of a limit behind one; return how many jobs were looked at.
local function open_limit(unit, limit, opened, looks)
  local left, behind = looks, opened
  while left > 0 and behind do
    behind = unit.call(
      'ZRANGEBYLEX', keys.lines(unit.root), '(' .. opened, '(' .. limit .. '\n', 'LIMIT', '0', '1'
    )[1]
    if behind then
      opened = behind
      left = left - math.max(1, open(unit, behind, left))
    end
  end
  if behind then
    gates.set_due(unit, '\t' .. opened, unit.now_ms)
  end
  return looks - left
end

-- Open the gates of a limit that has new terms, as far as the bound goes. Return what is left of that.
function lines.follow(unit, limit, looks)
  return looks - open_limit(unit, limit, limit, looks)
end

-- Note that a strike's line may be opened.
function lines.let_go(unit, line)
  gates.of(unit, line).looks = LOOKS
end

-- Open the gates in which places came free in this call, in the order in which it met them, as far as the bound goes.
function lines.open_freed(unit)
  local left, is_done = LOOKS, false
  while left > 0 and not is_done do
    is_done = true
    for _, name in ipairs(unit.gate_names) do
      local gate = unit.gates[name]
      if gate.looks > 0 and left > 0 then
        local looks = math.min(gate.looks, left)
        gate.looks, is_done = 0, false
        left = left - open(unit, name, looks)
      end
    end
  end
end

-- Let the next of those keys in whose turn is over, in that order, for a claim that goes on with them.
function lines.let_next_in(unit)
  local names = unit.turns_over
  unit.turns_over = false
  for _, name in ipairs(names) do
    local gate = gates.of(unit, name)
    local looks = gate.looks
    gate.looks = 0
    open(unit, name, looks)
  end
end

-- Open the gates that are due, and go on with limits that have new terms.
function lines.open_due(unit)
  local names = unit.call('ZRANGEBYSCORE', keys.gates(unit.root), '-inf', unit.now_text, 'LIMIT', '0', LOOKS)
  local looks = LOOKS
  for _, name in ipairs(names) do
    if looks > 0 and not string.match(name, REST) then
      looks = looks - math.max(1, open(unit, name, looks))
    end
  end
  for _, name in ipairs(names) do
    local opened, limit = string.match(name, REST)
    if opened and looks > 0 then
      gates.set_due(unit, name, nil)
      looks = looks - open_limit(unit, limit, opened, looks)
    end
  end
  gates.write(unit, false)
end

-- Put right where a blocked job waits if its place was lost behind our back. Return whether it is blocked still, and
-- whether anything was wrong; nil of one that no limit holds up.
function lines.mend(unit, id)
  local job = record.load_waiting(unit, id)
  if not job or job.state ~= 'blocked' then
    return nil
  end
  local line = parking.line(unit, job)
  if (job.gates or strikes.has_line(line)) and unit.call('ZSCORE', keys.line(unit.root, line), id) then
    return true, false
  end
  for name in string.gmatch(job.gates or '', '[^\n]+') do
    gates.part(unit, name, id)
  end
  moves.move(unit, job, 'ready', 'queued', '', moves.ADMITTED, 'tails')
  return job.line ~= false and job.line ~= nil, true
end

-- Open the gates that got room in a call, and end it.
function lines.close(unit)
  if unit.gates then
    lines.open_freed(unit)
    gates.write(unit, true)
  end
  unit:close()
end
