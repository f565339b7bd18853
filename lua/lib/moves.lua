-- Where jobs are, and how they get from one place to another: the only writer of counts, lines and owners, and with
-- `history` of the places of ended jobs. A verb decides, and what it gathers here is written when its call closes.
local DEFAULT_LANE = limits.DEFAULT_LANE
moves.ADMITTED = 'admitted' -- what the event says of a job that has left the line of a gate for its place
local OWNERLESS = { queued = true, blocked = true, purged = true } -- events of what no incarnation does

local function count(unit, name, delta)
  local counts = unit.counts
  if counts then
    counts[name] = (counts[name] or 0) + delta
  else
    unit.counts = { [name] = delta }
  end
end

-- Ready jobs of other lanes than the default one are counted apart too, so that a claim knows what is left in its own.
local function count_ready(unit, lane, delta)
  count(unit, 'queued', delta)
  if lane ~= DEFAULT_LANE then
    count(unit, 'elsewhere', delta)
    count(unit, 'queued:' .. lane, delta)
  end
end

local note = entries.note

-- Note a member that leaves the delayed ones.
function moves.undelay(unit, member)
  note(unit, 'undelayed', 'members', member)
end

-- Note that a job leaves those of its incarnation.
function moves.disown(unit, incarnation, id)
  note(unit, 'left', incarnation, id)
end

-- Let a delayed job wait for its time. A consumer of its lane is woken when the queue's next due time comes earlier.
function moves.wait_until(unit, job, due_ms)
  local key = keys.delayed(unit.root)
  local first = unit.call('ZRANGE', key, '0', '0', 'WITHSCORES')
  if not first[1] or due_ms < tonumber(first[2]) then
    wake.note(unit, job.lane or record.lane(unit, job.id))
  end
  unit.call('ZADD', key, numbers.text(due_ms), record.member(job.id, job.created_ms, job.generation))
end

-- Strike out those of the blocked that the call has noted.
local function write_unblocked(unit, call)
  local ids = unit.unblocked.ids
  for first = 1, #ids, 1000 do
    local n = call('ZREM', keys.blocked(unit.root), unpack(ids, first, math.min(first + 999, #ids)))
    count(unit, 'blocked', -n)
  end
  unit.unblocked = false
end

-- Note who is blocked, by the active job of its id or by a limit, and since when it is there.
function moves.block(unit, id, created_ms)
  if unit.unblocked then
    write_unblocked(unit, unit.call) -- it may be among them
  end
  count(unit, 'blocked', unit.call('ZADD', keys.blocked(unit.root), created_ms, id))
end

function moves.unblock(unit, id)
  count(unit, 'blocked', -unit.call('ZREM', keys.blocked(unit.root), id))
end

-- Three digits that rise within a call.
local function next_turn(unit)
  unit.turns = unit.turns + 1
  return string.format('%03d', unit.turns)
end

local function write_lines(unit, call)
  if unit.tails or unit.heads or unit.ordered then
    entries.write(unit, call)
  end
  if unit.undelayed then
    local members = unit.undelayed.members
    for first = 1, #members, 1000 do
      call('ZREM', keys.delayed(unit.root), unpack(members, first, math.min(first + 999, #members)))
    end
    unit.undelayed = false
  end
end

-- The number of a ready job's place in a queue with limits: at the head or tail of its line, or the one it has. What
-- this call has noted for tails comes before. nil in any other queue.
local function number_of(unit, job, end_of_line)
  local has_gates = settings.of(unit).has_gates
  if not (has_gates or job.gates_asked) then
    return nil
  end
  if unit.tails and next(unit.tails) then
    write_lines(unit, unit.call)
  end
  entries.begin_numbers(unit)
  if end_of_line == 'tails' then
    return entries.tail(unit)
  end
  return end_of_line == 'heads' and entries.head(unit) or end_of_line
end

local leave, enter = {}, {}

-- The entry stays: it does not fit the record any more, and whoever pops it drops it.
function leave.queued(unit, job)
  count_ready(unit, job.lane or record.lane(unit, job.id), -1)
end

function leave.scheduled(unit, job)
  count(unit, job.state, -1)
  moves.undelay(unit, record.member(job.id, job.created_ms, job.generation))
end
leave.retrying = leave.scheduled

function leave.blocked(unit, job)
  note(unit, 'unblocked', 'ids', job.id)
  unit.call('HDEL', job.key, 'parked')
end

-- Who waits for one to end may come now, where only so many may be active.
local function make_way(unit)
  if not unit.has_made_way then
    unit.has_made_way = true
    wake.all(unit)
  end
end

function leave.active(unit, job)
  local owner = record.owner(job)
  count(unit, 'active', -1)
  if settings.of(unit).max_active > 0 then
    make_way(unit)
  end
  moves.disown(unit, owner, job.id)
  if job.cancel then
    unit.call('SREM', keys.cancels(unit.root, owner), job.id)
  end
end

function leave.completed(unit, job)
  history.remove(unit, job.state, job.id)
end
leave.failed, leave.cancelled = leave.completed, leave.completed

-- At the head or tail of its line, or where its number is.
function enter.ready(unit, job, end_of_line, ...)
  local generation = job.turn and unit.generation .. job.turn or unit.generation
  count_ready(unit, job.lane, 1)
  unit.call('HSET', job.key, 'head', record.head(unit, job, 'queued', generation), ...)
  local line, entry = job.lane .. ':' .. job.tier, generation .. ':' .. job.id
  if job.has_turn then
    entries.put(unit, line, job.number, entry)
  elseif job.number then
    entries.place(unit, line, job.number, entry)
  else
    note(unit, end_of_line, line, entry)
  end
end

-- In the line of a gate.
function enter.blocked(unit, job, _, ...)
  moves.block(unit, job.id, job.created_ms)
  record.with_more(job)
  unit.call('HSET', job.key, 'head', record.head(unit, job, 'blocked', ''), 'parked', job.line, ...)
  gates.join(unit, job.line, job.tier, job.number, job.id)
end

-- The place of a new delayed job among those of the same due time and the same millisecond is that of its creation. It
-- stands in the head where a ready job has its generation.
function enter.delayed(unit, job, state, due_ms, ...)
  count(unit, state, 1)
  job.generation = job.is_new and unit.generation .. next_turn(unit) or ''
  unit.call('HSET', job.key, 'head', record.head(unit, job, state, job.generation), ...)
  moves.wait_until(unit, job, due_ms)
end

function enter.ended(unit, job, state, keep_ms, ...)
  job.state = state
  stats.tally(unit, state)
  if keep_ms == '0' then
    record.erase(unit, job.id)
    return
  end
  unit.call('HSET', job.key, 'head', record.head(unit, job, state, ''), ...)
  record.expire(unit, job, keep_ms)
  history.add(unit, state, { job.id })
end

function enter.dead(unit, job, keep_ms, ...)
  enter.ended(unit, job, 'failed', keep_ms, ...)
end

function enter.gone(unit, job)
  record.erase(unit, job.id)
end

-- Give back what a job holds in its gates. Return whether it has to wait in the line of one, where it was to be ready.
local function is_held_up(unit, job, place, end_of_line)
  local number = place == 'ready' and number_of(unit, job, end_of_line)
  if number or job.gates or job.state == 'blocked' then
    job.number, job.line = number, parking.line_of(unit, job, number)
    if place == 'ready' and not job.line and number == end_of_line and job.gates and turns.are_among(job.gates) then
      job.number, job.has_turn = entries.tail(unit), true -- its turn begins now
    end
    return job.line
  end
end

-- Give a new job its place, and return its state. The rest is what the place asks for, then fields of the record.
function moves.enter(unit, job, place, kind, ...)
  local tail = job.tail or (place == 'delayed' and events.of_new(select(2, ...)) or events.NEW)
  if is_held_up(unit, job, place, (...)) then
    place, kind, tail = 'blocked', 'blocked', events.tail('0', '', '', '', parking.shown(job.line))
  end
  events.add(unit, kind, job.id, job.task, tail)
  enter[place](unit, job, ...)
  return kind
end

-- Take a job from its place to another, and tell of it: `kind`, if any, `run_ms` and `detail` are its event's. The rest
-- is what the place asks for, then fields of the record.
function moves.move(unit, job, place, kind, run_ms, detail, ...)
  if is_held_up(unit, job, place, (...)) then
    place = 'blocked'
    if kind == 'queued' then
      kind, detail = detail ~= moves.ADMITTED and 'blocked', parking.shown(job.line)
    end
  end
  leave[job.state](unit, job)
  if kind then
    local owner = OWNERLESS[kind] and '' or record.owner(job)
    events.add(unit, kind, job.id, job.task, events.tail(job.epoch, owner, '', run_ms, detail))
  end
  enter[place](unit, job, ...)
end

-- Take a ready job to the line of a gate or strike that does not let it start; `number` is that of its place.
function moves.park(unit, job, line, number)
  number = number or entries.old(unit)
  parking.line_of(unit, job, nil)
  leave[job.state](unit, job)
  job.line, job.number = line, number
  events.add(unit, 'blocked', job.id, job.task, events.tail(job.epoch, '', '', '', parking.shown(line)))
  enter.blocked(unit, job)
end

-- Hand a ready job, whose entry is popped, to the incarnation that claims. The caller counts it.
function moves.start(unit, key, id, task, start)
  unit.raw('HSET', key, 'head', start.head, 'claim', start.own)
  local n = #unit.joined
  unit.joined[n + 1] = id
  stats.observe(unit, 'wait:', start.wait_ms)
  events.add(unit, 'active', id, task, start.tail)
end

-- Count many jobs at once: those of a lane that were started, and plain ones that came.
function moves.count_started(unit, lane, n)
  count_ready(unit, lane, -n)
  count(unit, 'active', n)
end

function moves.count_stored(unit, n)
  count_ready(unit, DEFAULT_LANE, n)
end

-- Let go of many plain jobs that an incarnation has completed.
function moves.complete(unit, incarnation, ids)
  count(unit, 'active', -#ids)
  if (unit.settings or settings.of(unit)).max_active > 0 then
    make_way(unit)
  end
  stats.tally(unit, 'completed', #ids)
  history.add(unit, 'completed', ids)
  if not unit.left then
    unit.left = { [incarnation] = ids }
  else
    for _, id in ipairs(ids) do
      moves.disown(unit, incarnation, id)
    end
  end
end

-- Ask an active job to stop: its worker hears of it with its next beat.
function moves.ask_to_stop(unit, job)
  record.add_fields(unit, job, 'cancel', '1')
  unit.call('SADD', keys.cancels(unit.root, record.owner(job)), job.id)
end

-- Forget what an incarnation owns.
function moves.forget_owner(unit, incarnation)
  unit.call('UNLINK', keys.processing(unit.root, incarnation), keys.cancels(unit.root, incarnation))
end

-- Delete the lines and tokens of a lane in which no job is: what cancelled ones left behind.
function moves.forget_lane(unit, lane)
  for tier = 0, 9 do
    unit.call('UNLINK', keys.ready(unit.root, lane .. ':' .. tier), keys.ordered(unit.root, lane .. ':' .. tier))
  end
  unit.call('UNLINK', keys.wake(unit.root, lane))
end

-- Write the gathered entries now, for a caller that goes on to claim.
function moves.flush(unit)
  write_lines(unit, unit.call)
end

-- Let a waiting job wait elsewhere, or for another time. What this call has noted of its places is written before, and
-- its entry has a generation of its own, since it may come from a place that the same call gave it.
function moves.wait_again(unit, job, lane, tier, place, ...)
  local old_tier = job.tier
  job.tier = tier
  if is_held_up(unit, job, place, (...)) then
    place = 'blocked'
  end
  job.tier = old_tier
  leave[job.state](unit, job)
  write_lines(unit, unit.call)
  job.lane, job.tier, job.turn = lane, tier, next_turn(unit)
  enter[place](unit, job, ...)
end

local function write_owners(unit, call)
  if unit.joined and unit.joined[1] then
    call('SADD', keys.processing(unit.root, unit.joiner), unpack(unit.joined))
    unit.joined = false
  end
  if unit.left then
    for incarnation, ids in pairs(unit.left) do
      call('SREM', keys.processing(unit.root, incarnation), unpack(ids))
      unit.left[incarnation] = nil
    end
  end
end

local function write_counts(unit, call)
  local key = keys.counts(unit.root)
  if not unit.counts then
    return
  end
  for name, delta in pairs(unit.counts) do
    local remaining = delta ~= 0 and call('HINCRBY', key, name, numbers.text(delta))
    unit.counts[name] = nil
    if name == 'queued' then
      unit.queued = remaining
    elseif remaining == 0 and string.sub(name, 1, 7) == 'queued:' then
      call('HDEL', key, name) -- or lanes that were used once would pile up
    end
  end
end

function moves.write(unit, call)
  write_lines(unit, call)
  write_owners(unit, call)
  if unit.unblocked then
    write_unblocked(unit, call)
  end
  write_counts(unit, call)
end
