-- The job that is blocked by the active one of its id, and runs next: a whole request beside the record, one an id. The
-- active record's field `next` says that there is one.

-- nil where there is none, or none that can be read.
local function load(unit, id)
  local fields = record.fields(unit, keys.next(unit.root, id))
  if not (fields and fields.task and fields.payload and fields.update) then
    return nil
  end
  local successor = {
    id = id, word = fields.update, due_ms = tonumber(numbers.digits(fields.due_ms) or nil),
    created_ms = numbers.digits(fields.created_ms) or unit.now_text, channels = fields.channels,
    is_joined = fields.joined == '1', fields = fields,
  }
  for _, name in ipairs({ 'update', 'due_ms', 'created_ms', 'channels', 'joined' }) do
    fields[name] = nil
  end
  return successor
end

local function save(unit, successor)
  local key = keys.next(unit.root, successor.id)
  local words = { 'update', successor.word, 'created_ms', successor.created_ms }
  for name, value in pairs(successor.fields) do
    words[#words + 1], words[#words + 2] = name, value
  end
  for name, value in pairs({
    due_ms = successor.due_ms and numbers.text(successor.due_ms), channels = successor.channels,
    joined = successor.is_joined and '1',
  }) do
    if value then
      words[#words + 1], words[#words + 2] = name, value
    end
  end
  unit.call('UNLINK', key)
  unit.call('HSET', key, unpack(words))
end

-- Take it away and return it. The place among the blocked may be that of the record, which a limit holds up.
local function take(unit, id)
  local successor = load(unit, id)
  local was_there = unit.call('UNLINK', keys.next(unit.root, id)) == 1
  if was_there or record.state(unit.call('HGET', keys.job(unit.root, id), 'head')) ~= 'blocked' then
    moves.unblock(unit, id)
  end
  return successor
end

-- A new one, which has no time yet.
local function new(unit, job)
  moves.block(unit, job.id, unit.now_text)
  record.add_fields(unit, job, 'next', '1')
  return { id = job.id, word = '0000', created_ms = unit.now_text, fields = updates.copy(unit, job) }
end

-- Store the successor of an active job, or change it.
local function store(unit, job, request)
  local successor = load(unit, job.id) or new(unit, job)
  local takes_time = updates.names_time(request.word)
  if updates.names_time(successor.word) then
    takes_time = updates.takes_time(unit, request.word, successor.due_ms, request.due_ms)
  end
  if takes_time then
    successor.due_ms = request.due_ms and request.due_ms > unit.now_ms and request.due_ms or nil
  end
  updates.merge(successor.fields, request.word, request.fields, takes_time)
  updates.add_channels(successor, request.channels)
  successor.is_joined = successor.is_joined or request.is_joined
  successor.word = updates.together(successor.word, request.word)
  save(unit, successor)
  events.add(unit, 'blocked', job.id, successor.fields.task, events.NEW)
end

-- Do what an update asks of the job that has its id, and return its verdict; nil where a new job is to be stored.
function successors.update(unit, key, id, tier, task, payload, asked)
  local job = record.load_waiting(unit, id)
  if not job then
    return intake.standing(unit, key, id, '', false)
  elseif record.is_terminal(job.state) then
    intake.make_room(unit, id, job.state)
    return nil
  end
  local request = updates.request(unit, tier, task, payload, asked)
  if job.state == 'active' then
    store(unit, job, request)
  else
    updates.apply(unit, job, request)
  end
  return 'updated'
end

-- Let a channel hear of its end.
function successors.add_channel(unit, id, channel)
  local key = keys.next(unit.root, id)
  unit.call('HSET', key, 'channels', record.with_channel(unit.call('HGET', key, 'channels'), channel))
end

-- Let it in, as a new job: nothing is left of the one before.
function successors.enter(unit, id)
  local successor = take(unit, id)
  if not successor then
    return
  end
  local few, said = {}, successor.fields
  updates.add_channels(said, successor.channels, successor.is_joined)
  for name, value in pairs(said) do
    if name ~= 'task' and name ~= 'payload' and name ~= 'lane' and name ~= 'tier' then
      few[#few + 1], few[#few + 2] = name, value
    end
  end
  local lane, tier = record.lane_name(said.lane) or record.DEFAULT_LANE, record.tier(said.tier)
  local job, fields = intake.new(unit, keys.job(unit.root, id), id, said.task, said.payload, lane, tier, few)
  job.is_new, job.created_ms, job.gates_asked = false, successor.created_ms, said.gates
  stats.tally(unit, 'enqueued')
  local due_ms = successor.due_ms
  if due_ms and due_ms > unit.now_ms then
    job.tail = events.tail('0', '', '', '', numbers.text(due_ms) .. '\tnext')
    moves.enter(unit, job, 'delayed', 'scheduled', 'scheduled', due_ms, unpack(fields))
  else
    job.tail = events.tail('0', '', '', '', 'next')
    moves.enter(unit, job, 'ready', 'queued', 'tails', unpack(fields))
  end
end

-- Change a job by it that waits again.
function successors.apply(unit, id)
  local successor = take(unit, id)
  unit.call('HDEL', keys.job(unit.root, id), 'next')
  if successor then
    updates.apply(unit, record.load_waiting(unit, id), successor)
  end
end

-- Drop it, and return it; nil where there is none.
function successors.drop(unit, id)
  local successor = take(unit, id)
  if successor then
    unit.call('HDEL', keys.job(unit.root, id), 'next')
    local tail = events.tail('0', '', '', '', 'next\t' .. successor.created_ms)
    events.add(unit, 'cancelled', id, successor.fields.task, tail)
  end
  return successor
end

-- Give it back its place where that was lost, for the repair to look at; return how many that were.
function successors.restore(unit, id)
  if unit.call('EXISTS', keys.next(unit.root, id)) == 0 or unit.call('ZSCORE', keys.blocked(unit.root), id) then
    return 0
  end
  moves.block(unit, id, unit.now_text)
  return 1
end

-- Put right what was lost behind our back. Return whether it is blocked still, and whether anything was wrong.
function successors.mend(unit, id)
  local job = record.load(unit, id)
  local is_there = load(unit, id) ~= nil
  if job and job.state == 'active' and is_there then
    if not job.has_next then
      record.add_fields(unit, job, 'next', '1')
    end
    return true, not job.has_next
  elseif not job or record.is_terminal(job.state) then
    if job then
      intake.make_room(unit, id, job.state)
    end
    successors.enter(unit, id)
  else
    successors.apply(unit, id)
  end
  return false, true
end
