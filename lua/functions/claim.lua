-- Make due jobs ready and hand the best ones to an incarnation; atomic because a job must have one owner.
-- Reply: status, has_more, ms to the next due job (-1: none), then five strings a job: id, task, payload,
-- numbers, options; the numbers are epoch, attempts, stalls, created, ms waited.
local BATCH, BATCH_BYTES, LOOKS = limits.BATCH_LIMIT, limits.BATCH_LIMIT_BYTES, limits.CLAIM_LOOKS
local NOTHING = {}

local function next_due(q)
  local first = q.try('ZRANGE', keys.delayed(q.root), '0', '0', 'WITHSCORES') -- none, if the key is a stranger's
  return first[2] and queue.text(math.max(0, first[2] - q.now)) or '-1'
end

-- Make ready what fell due, end what expired while it waited; return the ms to the next due job.
local function promote(q)
  local due_ms = next_due(q)
  if due_ms ~= '0' then
    return due_ms
  end
  local members = q.call('ZRANGEBYSCORE', keys.delayed(q.root), '-inf', q.now_text, 'LIMIT', 0, BATCH)
  for _, member in ipairs(members) do
    local id = job.id_of(member)
    local record = job.of_member(q, member)
    if not id then
      damage.note(q.root, 'delayed')
    elseif not record then
      finish.fail_headless(q, id, 'scheduled')
      job.erase_lost(q, id)
    elseif not record.is_sound then
      finish.fail_damaged(q, record)
    elseif job.is_overdue(q, record) then
      finish.fail(q, record, 'expired', '', '', '')
    else
      job.make_ready(q, record, q.tails)
      queue.event(q, 'queued', record.id, record.task, record.epoch, '', '', '', '')
    end
  end
  q.call('ZREM', keys.delayed(q.root), unpack(members))
  queue.flush(q)
  return next_due(q)
end

-- Whether a job has been stalled and one more death would end it.
local function is_on_last_chance(q, id)
  local v = q.call('HMGET', keys.job(q.root, id), 'stalls', 'max_stalls')
  return v[1] and job.number(v[1], 0) + 1 >= job.number(v[2], job.DEFAULT_MAX_STALLS)
end

-- Whether a job that one more death would end must wait, since this incarnation has such a job already: so
-- one that kills its workers takes none of those along that were claimed with it before.
local function must_wait(q, claim, id)
  if not is_on_last_chance(q, id) then
    return false
  end
  local key = keys.worker(q.root, claim.incarnation)
  local other = q.call('HGET', key, 'last_chance')
  local processing = keys.processing(q.root, claim.incarnation)
  if claim.has_last_chance then
    return true
  end
  -- That id may be of another job by now, or of one that was redriven.
  if other and q.call('SISMEMBER', processing, other) == 1 and is_on_last_chance(q, other) then
    return true
  end
  claim.has_last_chance = true
  q.call('HSET', key, 'last_chance', id)
  return false
end

-- Note the words of the reply and the event that tell of a job's time.
local function note_times(q, known, claim, since)
  local wait_ms = queue.text(math.max(0, q.now - since)) -- the clock may have been set back
  known.wait_ms = wait_ms
  known.numbers = known.epoch .. ' ' .. known.attempts .. ' ' .. known.stalls .. ' ' .. known.created .. ' ' .. wait_ms
  known.event = '\t' .. known.epoch .. '\t' .. claim.incarnation .. '\t' .. wait_ms .. '\t\t'
end

-- Whether a job is new and has no fields that only few have: most are, and jobs that came together look alike.
local function is_new(q, known, claim, head, generation)
  if head == known.source then
    return generation == known.generation
  end
  local big, created = job.as_it_came(head, generation)
  if not big then
    return false
  end
  known.source, known.generation, known.big, known.created = head, generation, big, created
  known.head = job.head(q, known, 'active', '')
  note_times(q, known, claim, created)
  return true
end

-- What a claim must know of any other job. nil: the entry stands for none.
local function look(q, id, generation, claim)
  local known = job.load(q, id)
  if not known then
    finish.fail_headless(q, id, 'queued', claim.lane)
    return nil
  elseif known.state ~= 'queued' or known.generation ~= generation then
    return nil
  end
  local few = known.more ~= '' and q.call('HMGET', known.key, 'expires', 'options', 'max_stalls') or NOTHING
  if not (known.is_sound and job.is_number(few[1]) and job.is_number(few[3])) then
    finish.fail_damaged(q, job.load_waiting(q, id))
    return nil
  end
  known.options = few[2] or ''
  known.is_overdue = few[1] and known.epoch == '0' and tonumber(few[1]) <= q.now
  known.epoch = queue.text(known.epoch + 1)
  known.own = known.epoch .. '\t' .. claim.nonce
  known.head = job.head(q, known, 'active', '')
  note_times(q, known, claim, known.at ~= '' and known.at or known.created)
  return known
end

-- Append one claimed job to the reply: its numbers are one word, since a word costs 700 instructions.
local function append(reply, id, task, payload, numbers, options)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = id, task, payload, numbers, options
end

-- Take one ready entry if it still stands for a queued job. Returns its size, nil if it was not taken, and
-- true if it must stay.
local function take(q, entry, claim, reply)
  local generation, id = string.match(entry, '^(%d+):(.*)$')
  if not id then
    damage.note(q.root, 'ready')
    return nil
  end
  local key = keys.job(q.root, id)
  local v = q.try('HMGET', key, 'head', 'task', 'payload') -- of a key of another type this is an error, and all are nil
  local known = claim.new
  if not (v[2] and is_new(q, known, claim, v[1], generation)) then
    known = look(q, id, generation, claim)
    if not known then
      if not v[1] then
        job.erase(q, id) -- what lies beside a record that was lost
      end
      return nil
    elseif known.is_overdue then
      finish.fail(q, job.load_waiting(q, id), 'expired', '', '', '')
      return nil
    elseif known.stalls ~= 0 and must_wait(q, claim, id) then
      return nil, true
    end
  end
  local payload = v[3] or q.call('GET', keys.payload(q.root, id)) or ''
  q.raw('HSET', key, 'head', known.head, 'claim', known.own)
  queue.observe(q, 'wait:', known.wait_ms)
  queue.line(q, 'active\t' .. id .. '\t' .. v[2] .. known.event)
  append(reply, id, v[2], payload, known.numbers, known.options)
  claim.ids[#claim.ids + 1] = id
  return #payload
end

-- Take up to `limit` jobs of one lane, best tier first: LMPOP pops from the first list that has any. Return how many,
-- and whether to look for more: not who took nothing although it had room, since that can't take what is left, and to
-- wake it again would never end.
local function drain(q, lane, limit, claim, reply)
  local words = keys.pop_words(q.root, lane)
  claim.lane = lane
  local taken, pops, waiting, is_drained = 0, LOOKS, {}, false
  while taken < limit and pops > 0 and claim.bytes > 0 do
    words[#words] = queue.text(math.min(limit - taken, pops, 50))
    local popped = q.try('LMPOP', unpack(words))
    if popped and popped.err then
      popped = q.call('LMPOP', unpack(words))
    end
    if not popped then
      is_drained = true
      break
    end
    local list, entries = popped[1], popped[2]
    pops = pops - #entries
    for i, entry in ipairs(entries) do
      local size, must_stay = take(q, entry, claim, reply)
      if must_stay then
        waiting[#waiting + 1] = { list, entry }
      end
      if size then
        taken = taken + 1
        claim.bytes = claim.bytes - size
      end
      if claim.bytes <= 0 then
        for back = #entries, i + 1, -1 do
          q.call('LPUSH', list, entries[back])
        end
        break
      end
    end
  end
  -- At the tail, where it holds nobody up.
  for _, pair in ipairs(waiting) do
    q.call('RPUSH', pair[1], pair[2])
  end
  if is_drained and #waiting == 0 then
    return taken, false
  end
  return taken, taken > 0 or limit == 0 or claim.bytes <= 0 or (pops == 0 and #waiting == 0)
end

-- A repeated call: what it claimed the first time and still owns.
local function again(q, claim, reply)
  for _, id in ipairs(q.call('SMEMBERS', keys.processing(q.root, claim.incarnation))) do
    local record = job.load(q, id)
    if record and record.state == 'active' and record.claim == claim.nonce then
      local v = q.call('HMGET', record.key, 'payload', 'options')
      local payload = v[1] or q.call('GET', keys.payload(q.root, id)) or ''
      note_times(q, record, claim, q.now)
      append(reply, id, record.task, payload, record.numbers, v[2] or '')
    end
  end
end

function functions.claim(roots, args)
  local incarnation, number, nonce = unpack(args)
  local q = queue.open(roots[1])
  local last = worker.get(q, incarnation, 'claim')
  if not last then
    return { 'gone', '0', '-1' }
  end
  local claim = {
    incarnation = incarnation, nonce = nonce, ids = {}, bytes = BATCH_BYTES, has_last_chance = false, lane = '',
    new = {
      epoch = '1', attempts = '0', stalls = '0', options = '', own = '1\t' .. nonce, source = '', generation = '',
      head = '', big = '', more = '', created = '', run = '', wait_ms = '', numbers = '', event = '',
    },
  }
  local reply = { 'ok', '0', '-1' }
  if number + 0 < job.number(last, 0) then
    return redis.error_reply('STALECALL ' .. number .. ' is older than ' .. last)
  elseif number == last then
    again(q, claim, reply)
    reply[3] = next_due(q)
    return reply
  end
  q.raw('DEL', keys.woken(q.root))
  q.raw('HSET', keys.worker(q.root, incarnation), 'claim', number)
  if queue.config(q).is_paused then
    return { 'paused', '0', '-1' }
  end
  reply[3] = promote(q)
  local left = {} -- lanes that may have more for the caller
  for at = 4, #args, 2 do
    local lane, limit = args[at], math.min(tonumber(args[at + 1]), BATCH - #claim.ids)
    local taken, should_look = drain(q, lane, limit, claim, reply)
    queue.count_ready(q, lane, -taken)
    if should_look then
      left[#left + 1] = lane
    end
  end
  local taken = #claim.ids
  if taken > 0 then
    queue.join(q, incarnation, claim.ids)
    queue.count(q, 'active', taken)
  end
  queue.close(q)
  if #args == 3 then
    left = queue.lanes(q) -- who has no slot at all passes on whatever token it has
  end
  for _, lane in ipairs(left) do
    if queue.ready(q, lane) > 0 then
      queue.leave_wake(q, lane)
      reply[2] = '1'
    end
  end
  return reply
end
