-- Make due jobs ready and hand the best ones to an incarnation; atomic because a job must have one owner.
-- Reply: status, has_more, ms to the next due job (-1: none), then WIDTH strings a job.
local BATCH = 500
local BATCH_BYTES = 4 * 1024 * 1024
local POPS = 1000 -- entries looked at in one call a lane, left-over ones included
local MORE = { 'epoch', 'attempts', 'stalls', 'expires', 'options' }
local NOTHING = {}

local function next_due(q)
  local first = q.call('ZRANGE', q.root .. ':delayed', '0', '0', 'WITHSCORES')
  return first[2] and queue.text(math.max(0, first[2] - q.now)) or '-1'
end

-- Make ready what fell due, end what expired while it waited; return the ms to the next due job.
local function promote(q)
  local due_ms = next_due(q)
  if due_ms ~= '0' then
    return due_ms
  end
  local ids = q.call('ZRANGEBYSCORE', q.root .. ':delayed', '-inf', q.now_text, 'LIMIT', 0, BATCH)
  for _, id in ipairs(ids) do
    local record = job.load_waiting(q, id)
    if record and job.is_overdue(q, record) then
      finish.fail(q, record, 'expired', '', '', '')
    elseif record then
      job.make_ready(q, record, q.tails)
      queue.event(q, 'queued', id, record.task, record.epoch, '', '', '', '')
    end
  end
  q.call('ZREM', q.root .. ':delayed', unpack(ids))
  queue.flush(q)
  return next_due(q)
end

-- Append one claimed job to the reply.
local function append(reply, id, v, more, payload, epoch, wait_ms)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = id, v[3], payload, epoch
  reply[n + 5], reply[n + 6], reply[n + 7] = more[2] or '0', more[3] or '0', v[5]
  reply[n + 8], reply[n + 9] = wait_ms, more[5] or ''
end

-- Whether a job has been stalled and one more death would end it.
local function is_on_last_chance(q, id)
  local v = q.call('HMGET', job.key(q, id), 'stalls', 'max_stalls')
  return v[1] and v[1] + 1 >= tonumber(v[2] or job.DEFAULT_MAX_STALLS)
end

-- Whether a job that one more death would end must wait, since this incarnation has such a job already: so
-- one that kills its workers takes none of those along that were claimed with it before.
local function must_wait(q, claim, id)
  if not is_on_last_chance(q, id) then
    return false
  end
  local key = worker.key(q, claim.incarnation)
  local other = q.call('HGET', key, 'last_chance')
  local processing = q.root .. ':processing:' .. claim.incarnation
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

-- Take one ready entry if it still stands for a queued job. Returns its size, nil if it was not taken, and
-- true if it must stay.
local function take(q, entry, claim, reply)
  local gen, id = string.match(entry, '^(%d+):(.*)$')
  local key = q.root .. ':job:' .. id
  -- A field costs 0.2 µs, and a record without `at` is of a plain job that has not moved yet.
  local v = q.call('HMGET', key, 'state', 'gen', 'task', 'payload', 'created', 'at')
  if v[1] ~= 'queued' or v[2] ~= gen then
    return nil
  end
  local more = v[6] and q.call('HMGET', key, unpack(MORE)) or NOTHING
  if more[4] and tonumber(more[4]) <= q.now then
    finish.fail(q, job.load_waiting(q, id), 'expired', '', '', '')
    return nil
  end
  if more[3] and must_wait(q, claim, id) then
    return nil, true
  end
  local payload = v[4] or q.call('GET', q.root .. ':payload:' .. id) or ''
  local epoch = more[1] and queue.text(more[1] + 1) or '1'
  q.call('HSET', key, 'state', 'active', 'at', q.now_text, 'epoch', epoch, 'claim', claim.nonce)
  local wait_ms = math.max(0, q.now - (v[6] or v[5])) -- the clock may have been set back
  local wait_text = queue.text(wait_ms)
  queue.observe(q, 'wait:', wait_ms)
  queue.event(q, 'active', id, v[3], epoch, claim.incarnation, wait_text, '', '')
  append(reply, id, v, more, payload, epoch, wait_text)
  claim.ids[#claim.ids + 1] = id
  return #payload
end

-- Take up to `limit` jobs of one lane, best tier first: LMPOP pops from the first list that has any. Return how many,
-- and whether to look for more: not who took nothing although it had room, since that can't take what is left, and to
-- wake it again would never end.
local function drain(q, lane, limit, claim, reply)
  local ready = q.root .. ':ready:' .. lane .. ':'
  local taken, pops, waiting, is_drained = 0, POPS, {}, false
  while taken < limit and pops > 0 and claim.bytes > 0 do
    local popped = q.call(
      'LMPOP', '10', ready .. '9', ready .. '8', ready .. '7', ready .. '6', ready .. '5', ready .. '4',
      ready .. '3', ready .. '2', ready .. '1', ready .. '0', 'LEFT',
      'COUNT', queue.text(math.min(limit - taken, pops, 50))
    )
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
  for _, id in ipairs(q.call('SMEMBERS', q.root .. ':processing:' .. claim.incarnation)) do
    local key = job.key(q, id)
    local v = q.call('HMGET', key, 'state', 'claim', 'task', 'payload', 'created')
    if v[1] == 'active' and v[2] == claim.nonce then
      local more = q.call('HMGET', key, unpack(MORE))
      append(reply, id, v, more, v[4] or q.call('GET', q.root .. ':payload:' .. id) or '', more[1], '0')
    end
  end
end

function functions.claim(keys, args)
  local incarnation, number, nonce = unpack(args)
  local q = queue.open(keys[1])
  local me = worker.load(q, incarnation)
  if not me then
    return { 'gone', '0', '-1' }
  end
  local claim = { incarnation = incarnation, nonce = nonce, ids = {}, bytes = BATCH_BYTES }
  local reply = { 'ok', '0', '-1' }
  if number + 0 < me.claim then
    return redis.error_reply('STALECALL ' .. number .. ' is older than ' .. me.claim)
  elseif number + 0 == me.claim then
    again(q, claim, reply)
    reply[3] = next_due(q)
    return reply
  end
  q.call('DEL', q.root .. ':woken:' .. incarnation)
  q.call('HSET', worker.key(q, incarnation), 'claim', number)
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
    q.call('SADD', q.root .. ':processing:' .. incarnation, unpack(claim.ids))
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
