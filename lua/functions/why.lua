-- How a job stands, and what may keep it from running, at one instant. Reply: nothing where there is no record, else
-- what `reading` returns, the time, whether the queue is paused, its max_active, its active jobs, how many come before
-- the job, the successor, the gates, strikes and the place in the line of one, its owner, live workers, and whether
-- there are more of these.
local WORKERS, BEATS = limits.WHY_WORKERS, limits.WHY_BEATS
local NOTHING = {}

-- When the job that follows came, and when it is due.
local function successor(unit, id)
  local v = unit.call('HMGET', keys.next(unit.root, id), 'created_ms', 'due_ms')
  return v[1] and { v[1], v[2] or '' } or NOTHING
end

-- The gates of a job that waits for a worker or in a line: name, terms, ready, active, tokens, ms until the token that
-- it needs, how many are before it in its line, and who has places.
local function its_gates(unit, job, incarnations)
  if not job.gates or (job.state ~= 'queued' and job.state ~= 'blocked') then
    return NOTHING
  end
  local found, words = {}, {}
  for name in string.gmatch(job.gates, '[^\n]+') do
    found[#found + 1] = gates.of(unit, name)
  end
  local ids = holders.of(unit, job, found, incarnations)
  for at, gate in ipairs(found) do
    local needed = job.state == 'queued' and 1 or gate.ready + 1
    local in_ms = gate.rate ~= 0 and bucket.ms_until(gate, needed)
    local is_its_line = job.state == 'blocked' and parking.line(unit, job) == gate.name
    words[at] = {
      gate.name, terms.text(unit, terms.limit_of(gate.name)), numbers.text(gate.ready),
      numbers.text(gate.active), numbers.text(bucket.tokens(gate)), in_ms and numbers.text(in_ms) or '',
      is_its_line and before.parked(unit, job, gate) or '', unpack(ids[gate.name]),
    }
  end
  return words
end

-- The strikes of a job's task or of any, flat, and how many stand before it in the line of one.
local function its_strikes(unit, job)
  local set, words, line = settings.of(unit), {}, job.state == 'blocked' and parking.line(unit, job)
  for _, strike in ipairs((set.is_struck or set.strikes_version ~= 0) and strikes.all(unit) or NOTHING) do
    if strike.task == '' or strike.task == job.task then
      strikes.append(words, strike)
    end
  end
  return words, line and strikes.has_line(line) and before.parked(unit, job, { name = line }) or ''
end

-- The incarnations of a queue, as far as the bound goes: all their names, the beats of those that are alive by the
-- names, these names in their order, and whether there may be more.
local function look_at_workers(unit)
  local flat, has_more = incarnations.some_beats(unit, BEATS)
  local seen = { names = {}, beats = {}, live = {}, has_more = has_more }
  for i = 1, #flat, 2 do
    local name, beat = flat[i], flat[i + 1]
    seen.names[#seen.names + 1] = name
    if incarnations.is_live(unit, beat) then
      seen.live[#seen.live + 1], seen.beats[name] = name, beat
    end
  end
  table.sort(seen.live)
  return seen
end

-- What is said of those that are alive, and whether there may be more.
local function live_workers(unit, seen)
  local found = {}
  for at = 1, math.min(WORKERS, #seen.live) do
    found[at] = incarnations.words(unit, seen.live[at], seen.beats[seen.live[at]])
  end
  return found, seen.has_more or #seen.live > WORKERS
end

-- The worker that runs a job.
local function its_owner(unit, job)
  local owner = job.state == 'active' and record.owner(job)
  local beat = owner and unit.call('HGET', keys.beats(unit.root), owner)
  return beat and incarnations.words(unit, owner, beat) or NOTHING
end

function functions.why(roots, args)
  local unit, id = unit.open(roots[1]), args[1]
  local words = reading.words(unit, id)
  if not words then
    return NOTHING
  end
  local job, set, seen = record.load_waiting(unit, id), settings.of(unit), look_at_workers(unit)
  local workers, has_more = live_workers(unit, seen)
  local struck, struck_before = NOTHING, ''
  if job.state ~= 'active' and not record.is_terminal(job.state) then
    struck, struck_before = its_strikes(unit, job)
  end
  return {
    words, unit.now_text, set.is_paused and '1' or '0', numbers.text(set.max_active),
    unit.call('HGET', keys.counts(unit.root), 'active') or '0',
    job.state == 'queued' and before.ready(unit, job) or '', job.has_next and successor(unit, id) or NOTHING,
    its_gates(unit, job, seen.names), struck, struck_before, its_owner(unit, job), workers, has_more and '1' or '0',
  }
end
