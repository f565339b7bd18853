-- How a request changes what is kept of the job that has its id. What it changes is said in four characters: data, the
-- due time with the expiry (1 always, l if it is later, e if it is earlier), retries, and whether counts begin anew.
local DEFAULT = '1110'
local WORD = '^([01])([01le])([01])([01])$'
local DEFAULT_LANE, DEFAULT_TIER, INLINE_LIMIT = record.DEFAULT_LANE, record.DEFAULT_TIER, record.INLINE_LIMIT

-- Fields that no request sets, and those of retries and of the time; any other is data. Of `options` each part is one.
local OWN = {
  head = true, claim = true, result = true, reason = true, error = true, output = true, progress = true,
  put_back = true, failures = true, stalls = true, cancel = true, channels = true, joined = true, next = true,
  parked = true,
}
local RETRY, EXPIRY, OPTIONS = 'max_stalls', 'expires_at_ms', 'options'

local function is_data(name)
  return not (OWN[name] or name == RETRY or name == EXPIRY or name == OPTIONS)
end

-- Return whether there are new data, when there is a new time, whether there are new retries, and new counts.
local function read_word(word)
  local data, run_at, retry, counts = string.match(word, WORD)
  return data == '1', run_at, retry == '1', counts == '1'
end

-- Options are two texts, a line's end between: those that are data, and those about retries.
local function cut(options)
  return string.match(options or '', '^([^\n]*)\n?(.*)$')
end

local function join(data, retry)
  if retry ~= '' then
    return data .. '\n' .. retry
  end
  return data ~= '' and data or nil
end

local function either(first, second)
  return (first == '1' or second == '1') and '1' or '0'
end

-- What two updates change together: the newest time counts.
function updates.together(first, second)
  local data, run_at, retry, counts = string.match(first, WORD)
  local its_data, its_run_at, its_retry, its_counts = string.match(second, WORD)
  return either(data, its_data) .. (its_run_at == '0' and run_at or its_run_at) .. either(retry, its_retry)
    .. either(counts, its_counts)
end

-- What an enqueue asks for: `word` says what it changes, `due_ms` is nil of one that is to run now.
function updates.request(unit, tier, task, payload, asked)
  local fields = { task = task, payload = payload, tier = tier, lane = intake.lane(unit, asked.lane, task) }
  if asked.gates and read_word(asked.update) then
    fields.gates = gates.named(unit, asked.gates, fields.lane, tier)
  end
  for i = 1, #asked.few, 2 do
    if not OWN[asked.few[i]] then
      fields[asked.few[i]] = asked.few[i + 1]
    end
  end
  return {
    word = string.match(asked.update, WORD) and asked.update or DEFAULT, due_ms = asked.due_ms,
    channels = asked.channel, is_joined = asked.channel ~= '', fields = fields,
  }
end

-- What a record asks for but its time, as fields of a request.
function updates.copy(unit, job)
  local fields = record.fields(unit, job.key)
  fields.payload = fields.payload or unit.call('GET', keys.payload(unit.root, job.id)) or ''
  fields.task, fields[EXPIRY] = job.task, nil
  for name in pairs(OWN) do
    fields[name] = nil
  end
  return fields
end

-- Whether an update ever takes a request's time.
function updates.names_time(word)
  local _, run_at = read_word(word)
  return run_at ~= '0'
end

-- Whether it takes that in place of the one that a job has. None, or a past one, is now.
function updates.takes_time(unit, word, due_ms, asked_ms)
  local _, run_at = read_word(word)
  local its_ms, new_ms = math.max(due_ms or 0, unit.now_ms), math.max(asked_ms or 0, unit.now_ms)
  return run_at == '1' or (run_at == 'l' and new_ms > its_ms) or (run_at == 'e' and new_ms < its_ms)
end

-- Set fields to those of a request.
function updates.merge(fields, word, said, takes_time)
  local has_data, _, has_retry = read_word(word)
  local data, retry = cut(fields[OPTIONS])
  local said_data, said_retry = cut(said[OPTIONS])
  if has_data then
    for name in pairs(fields) do
      fields[name] = not is_data(name) and fields[name] or nil
    end
    for name, value in pairs(said) do
      fields[name] = is_data(name) and value or fields[name]
    end
    data = said_data
  end
  if has_retry then
    fields[RETRY], retry = said[RETRY], said_retry
  end
  fields[OPTIONS] = join(data, retry)
  if takes_time then
    fields[EXPIRY] = said[EXPIRY]
  end
end

-- Let a channel, or several, hear of the end too.
function updates.add_channels(fields, channels, is_joined)
  for channel in string.gmatch(channels or '', '%S+') do
    fields.channels = record.with_channel(fields.channels, channel)
  end
  fields.joined = is_joined and '1' or fields.joined
end

local function begin_counts_anew(unit, job, fields)
  fields.failures, fields.stalls, fields.put_back = nil, nil, nil
  unit.call('UNLINK', keys.errors(unit.root, job.id))
end

-- A payload lies in the record or beside it; of a job whose data stay, the field stays as it is.
local function place_payload(unit, job, fields)
  local place = keys.payload(unit.root, job.id)
  if #fields.payload > INLINE_LIMIT then
    unit.call('SET', place, fields.payload)
    job.big, fields.payload = '*', nil
  elseif job.big ~= '' then
    unit.call('UNLINK', place)
  end
end

-- Remove the fields that are no more, and return those that are new or others, with their values.
local function difference(unit, job, was, fields)
  local gone, others = {}, {}
  for name in pairs(was) do
    if not fields[name] then
      gone[#gone + 1] = name
    end
  end
  for name, value in pairs(fields) do
    if was[name] ~= value then
      others[#others + 1], others[#others + 2] = name, value
    end
  end
  if #gone > 0 then
    unit.call('HDEL', job.key, unpack(gone))
  end
  return others
end

local function due_ms_of(unit, job)
  local member = record.member(job.id, job.created_ms, job.generation)
  return record.is_delayed(job.state) and tonumber(unit.call('ZSCORE', keys.delayed(unit.root), member) or nil)
end

-- Whether a strike holds it up: that may not meet it with other data.
local function is_laid_aside(unit, job)
  return job.state == 'blocked' and strikes.has_line(parking.line(unit, job))
end

-- Give a job the place that it has now, with `others` of its fields; return the due time if it waits for one.
local function place(unit, job, lane, tier, due_ms, takes_time, new_ms, has_data, others)
  local is_other_line = lane ~= job.lane or tier ~= job.tier or job.gates ~= job.gates_asked
    or (has_data and is_laid_aside(unit, job))
  local is_in_line = job.state == 'queued' or job.state == 'blocked'
  if takes_time and new_ms then
    moves.wait_again(unit, job, lane, tier, 'delayed', 'scheduled', new_ms, unpack(others))
    return new_ms
  elseif (is_in_line and is_other_line) or (not is_in_line and takes_time) then
    moves.wait_again(unit, job, lane, tier, 'ready', 'tails', unpack(others))
    return nil
  end
  unit.call('HSET', job.key, 'head', job.big ~= '' and record.with_big(job.head) or job.head, unpack(others))
  if due_ms and is_other_line then
    wake.note(unit, lane) -- its consumers may have no timer for this one
  end
  return due_ms
end

-- Change a job that waits.
function updates.apply(unit, job, request)
  local was, fields = record.fields(unit, job.key), {}
  for name, value in pairs(was) do
    fields[name] = value
  end
  local has_data, _, _, has_counts = read_word(request.word)
  local due_ms = due_ms_of(unit, job)
  local new_ms = request.due_ms and request.due_ms > unit.now_ms and request.due_ms or nil
  local takes_time = updates.takes_time(unit, request.word, due_ms, new_ms)
  updates.merge(fields, request.word, request.fields, takes_time)
  updates.add_channels(fields, request.channels, request.is_joined)
  if has_counts then
    begin_counts_anew(unit, job, fields)
  end
  if has_data then
    place_payload(unit, job, fields)
  end
  local lane, tier = fields.lane or DEFAULT_LANE, fields.tier or DEFAULT_TIER
  fields.lane, fields.tier = lane ~= DEFAULT_LANE and lane or nil, tier ~= DEFAULT_TIER and tier or nil
  record.with_more(job)
  job.gates, job.gates_asked = was.gates, fields.gates
  local others = difference(unit, job, was, fields)
  due_ms = place(unit, job, lane, tier, due_ms, takes_time, new_ms, has_data, others)
  local tail = events.tail(job.epoch, '', '', '', due_ms and numbers.text(due_ms) or '')
  events.add(unit, 'updated', job.id, fields.task or '', tail)
end
