-- How ready jobs start: what a claim takes of each entry, and what it says of the job.
local FIELDS = record.with_few({
  'expires_at_ms', 'options', 'max_stalls', 'slots', 'claim', 'head', 'task', 'payload',
})

-- Whether one more death would end a job, and whether it must wait, since this incarnation has such a job already: so
-- one that kills its workers takes none of those along that were claimed with it before.
local function chance(unit, call, id)
  if not record.is_on_last_chance(unit, id) then
    return false, false
  elseif call.has_last_chance then
    return true, true
  end
  local key = keys.worker(unit.root, call.incarnation)
  local other = unit.call('HGET', key, 'last_chance')
  -- That id may be of another job by now, or of one that was redriven.
  if other and unit.call('SISMEMBER', keys.processing(unit.root, call.incarnation), other) == 1
    and record.is_on_last_chance(unit, other) then
    return true, true
  end
  return true, false
end

-- Note the words of the reply and the event that tell of a start's time.
local function note_times(unit, start, since_ms)
  local wait_ms = numbers.text(math.max(0, unit.now_ms - since_ms)) -- the clock may have been set back
  start.wait_ms = wait_ms
  start.numbers = start.epoch .. ' ' .. start.failures .. ' ' .. start.stalls .. ' ' .. start.created_ms .. ' '
    .. wait_ms
  start.tail = events.tail(start.epoch, unit.joiner, wait_ms, '', '')
end

-- Keep a job from being run, as the strike that its task meets says.
local function lay_aside(unit, call, id, struck, number)
  local job = record.load_waiting(unit, id)
  call.laid_aside = call.laid_aside + 1
  if struck.action == 'cancel' then
    finish.cancel(unit, job, '', 'struck')
  else
    moves.park(unit, job, struck.id, number)
  end
end

-- Return the head, task and payload of a job. Jobs that come one after the other are often alike: behind one that had
-- fields which few have, those are read in the same go, and returned, too.
local function read(unit, call, key)
  -- Of a key of another type this is an error, and all are nil.
  if call.has_more then
    local v = unit.try('HMGET', key, unpack(FIELDS))
    return v[12], v[13], v[14], v
  end
  local v = unit.try('HMGET', key, 'head', 'task', 'payload')
  return v[1], v[2], v[3]
end

-- Make a job of what was read.
local function load(unit, call, id, key, head, task, known)
  local job = record.read(unit, id, key, head, nil, task, FIELDS, known)
  call.has_more = job ~= nil and job.more ~= ''
  if job then
    local claim = job.others[5]
    if job.more == '' then
      claim = unit.call('HGET', key, 'claim')
    end
    job.epoch, job.nonce = record.claim_parts(claim)
  end
  return job
end

-- How a job starts that is not as it came. nil: the entry stands for none that may; true behind it: it must stay.
local function look(unit, call, job, id, generation, lane, number, struck)
  if not job then
    finish.fail_headless(unit, id, 'queued', lane)
    return nil
  elseif job.state ~= 'queued' or job.generation ~= generation then
    return nil
  end
  local few = job.others
  if not (job.is_sound and numbers.is_valid(few[1]) and numbers.is_valid(few[3])) then
    finish.fail_damaged(unit, record.load_waiting(unit, id))
    return nil
  elseif few[1] and job.epoch == '0' and tonumber(few[1]) <= unit.now_ms then
    finish.fail(unit, record.load_waiting(unit, id), 'expired', '', '', '')
    return nil
  elseif struck then
    lay_aside(unit, call, id, struck, number)
    return nil
  end
  local heavy = few[4] and slots.read(few[4])
  if heavy and not slots.fit(unit, call.room, heavy) then
    return nil
  end
  local is_last, must_wait = false, false
  if job.stalls ~= 0 then
    is_last, must_wait = chance(unit, call, id)
  end
  if must_wait then
    return nil, true
  end
  local line = job.gates and gates.start(unit, job.gates)
  if line then
    moves.park(unit, record.load_waiting(unit, id), line, number)
    return nil
  elseif is_last then
    call.has_last_chance = true
    unit.call('HSET', keys.worker(unit.root, call.incarnation), 'last_chance', id)
  end
  job.options = few[2] or ''
  job.epoch = numbers.text(job.epoch + 1)
  job.own = job.epoch .. '\t' .. call.nonce
  note_times(unit, job, job.at_ms ~= '' and job.at_ms or job.created_ms)
  if heavy then
    slots.take(call.room, heavy)
    job.numbers = job.numbers .. ' ' .. heavy
  end
  job.head = record.head(unit, job, 'active', '')
  return job
end

-- Append one claimed job to the reply: its numbers are one word, since a word costs 700 instructions.
local function append(reply, id, task, payload, start)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = id, task, payload, start.numbers, start.options
end

-- Take one ready entry if it still stands for a queued job; `number` is that of its place, if it has any. Returns its
-- size, nil if it was not taken, and true if it must stay.
function starts.take(unit, call, entry, lane, number)
  local generation, id = string.match(entry, '^(%d+):(.*)$')
  if not id then
    damage.note(unit.root, 'ready')
    return nil
  end
  local key = keys.job(unit.root, id)
  local head, task, payload, known = read(unit, call, key)
  local struck = call.is_struck and task and strikes.of_task(unit, task)
  local start = task and not struck and plain.take(unit, call.starts, head, generation, note_times)
  if not start then
    local must_stay
    local job = load(unit, call, id, key, head, task, known)
    start, must_stay = look(unit, call, job, id, generation, lane, number, struck)
    if not start then
      if not head then
        record.erase(unit, id) -- what lies beside a record that was lost
      end
      return nil, must_stay
    end
  elseif known then
    call.has_more = false
  end
  payload = payload or unit.call('GET', keys.payload(unit.root, id)) or ''
  moves.start(unit, key, id, task, start)
  append(call.reply, id, task, payload, start)
  return #payload
end

-- A repeated call: what it claimed the first time and still owns.
function starts.again(unit, call)
  for _, id in ipairs(unit.call('SMEMBERS', keys.processing(unit.root, call.incarnation))) do
    local job = record.load(unit, id)
    if job and job.state == 'active' and job.nonce == call.nonce then
      local v = unit.call('HMGET', job.key, 'payload', 'options', 'slots')
      job.options = v[2] or ''
      note_times(unit, job, unit.now_ms)
      local heavy = v[3] and slots.read(v[3])
      job.numbers = heavy and job.numbers .. ' ' .. heavy or job.numbers
      append(call.reply, id, job.task, v[1] or unit.call('GET', keys.payload(unit.root, id)) or '', job)
    end
  end
end
