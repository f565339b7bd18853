-- Make due jobs ready and hand the best ones to an incarnation; atomic because a job must have one owner.
-- Reply: status, has_more, ms to the next due job (-1: none), then WIDTH strings a job.
local BATCH = 500
local BATCH_BYTES = 4 * 1024 * 1024
local POPS = 1000 -- entries looked at in one call, left-over ones included
local FIELDS = {
  'state', 'gen', 'task', 'payload', 'epoch', 'attempts', 'stalls', 'created', 'at', 'expires', 'options',
}

-- Ready entries of jobs that fell due, and of those that expired while they waited.
local function promote(q)
  local ids = q.call('ZRANGEBYSCORE', q.root .. ':delayed', '-inf', q.now_text, 'LIMIT', 0, BATCH)
  if #ids == 0 then
    return
  end
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
end

local function next_due(q)
  local first = q.call('ZRANGE', q.root .. ':delayed', 0, 0, 'WITHSCORES')
  return first[2] and queue.text(math.max(0, first[2] - q.now)) or '-1'
end

-- Append one claimed job to the reply.
local function append(reply, id, v, payload, epoch, wait_ms)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = id, v[3], payload, epoch
  reply[n + 5], reply[n + 6], reply[n + 7] = v[6] or '0', v[7] or '0', v[8]
  reply[n + 8], reply[n + 9] = wait_ms, v[11] or ''
end

-- Whether a job that one more death would end must wait, since this incarnation has such a job already: so
-- one that kills its workers takes none of those along that were claimed with it before.
local function must_wait(q, claim, id, stalls)
  local max_stalls = q.call('HGET', job.key(q, id), 'max_stalls') or job.DEFAULT_MAX_STALLS
  if stalls + 1 < tonumber(max_stalls) then
    return false
  end
  local key = worker.key(q, claim.incarnation)
  local other = q.call('HGET', key, 'last_chance')
  local processing = q.root .. ':processing:' .. claim.incarnation
  if claim.has_last_chance or (other and q.call('SISMEMBER', processing, other) == 1) then
    return true
  end
  claim.has_last_chance = true
  q.call('HSET', key, 'last_chance', id)
  return false
end

-- Take one ready entry if it still stands for a queued job. Returns its size, nil if it was not taken, and
-- true if it must stay.
local function take(q, entry, claim, reply)
  local colon = string.find(entry, ':', 1, true)
  local id = string.sub(entry, colon + 1)
  local key = q.root .. ':job:' .. id
  local v = q.call('HMGET', key, unpack(FIELDS))
  if v[1] ~= 'queued' or v[2] ~= string.sub(entry, 1, colon - 1) then
    return nil
  end
  if v[10] and tonumber(v[10]) <= q.now then
    finish.fail(q, job.load_waiting(q, id), 'expired', '', '', '')
    return nil
  end
  if v[7] and must_wait(q, claim, id, v[7]) then
    return nil, true
  end
  local payload = v[4] or q.call('GET', q.root .. ':payload:' .. id) or ''
  local epoch = v[5] and queue.text(v[5] + 1) or '1'
  q.call('HSET', key, 'state', 'active', 'at', q.now_text, 'epoch', epoch, 'claim', claim.nonce)
  local wait_ms = q.now - (v[9] or v[8])
  local wait_text = queue.text(wait_ms)
  queue.observe(q, 'wait:', wait_ms)
  queue.event(q, 'active', id, v[3], epoch, claim.incarnation, wait_text, '', '')
  append(reply, id, v, payload, epoch, wait_text)
  claim.ids[#claim.ids + 1] = id
  return #payload
end

-- Take up to `limit` jobs of one lane, best tier first.
local function drain(q, lane, limit, claim, reply)
  for tier = 9, 0, -1 do
    local list = q.root .. ':ready:' .. lane .. ':' .. tier
    local waiting = {}
    while limit > 0 and claim.pops > 0 and claim.bytes > 0 do
      local entries = q.call('LPOP', list, math.min(limit, claim.pops, 50))
      if not entries then
        break
      end
      claim.pops = claim.pops - #entries
      for i, entry in ipairs(entries) do
        local size, must_stay = take(q, entry, claim, reply)
        if must_stay then
          waiting[#waiting + 1] = entry
        end
        if size then
          limit = limit - 1
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
    if #waiting > 0 then
      -- At the tail, where it holds nobody up.
      q.call('RPUSH', list, unpack(waiting))
      claim.has_waiting = true
    end
  end
end

-- A repeated call: what it claimed the first time and still owns.
local function again(q, claim, reply)
  for _, id in ipairs(q.call('SMEMBERS', q.root .. ':processing:' .. claim.incarnation)) do
    local v = q.call('HMGET', job.key(q, id), unpack(FIELDS))
    if v[1] == 'active' and q.call('HGET', job.key(q, id), 'claim') == claim.nonce then
      append(reply, id, v, v[4] or q.call('GET', q.root .. ':payload:' .. id) or '', v[5], '0')
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
  local claim = { incarnation = incarnation, nonce = nonce, ids = {}, pops = POPS, bytes = BATCH_BYTES }
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
  promote(q)
  local room = BATCH
  for at = 4, #args, 2 do
    local limit = math.min(tonumber(args[at + 1]), room)
    drain(q, args[at], limit, claim, reply)
    room = BATCH - #claim.ids
  end
  local taken = #claim.ids
  if taken > 0 then
    q.call('SADD', q.root .. ':processing:' .. incarnation, unpack(claim.ids))
    queue.count(q, 'queued', -taken)
    queue.count(q, 'active', taken)
  end
  reply[3] = next_due(q)
  queue.close(q)
  local left = tonumber(q.call('HGET', q.root .. ':counts', 'queued') or 0)
  -- Who took nothing although it had room can't take what is left: to wake it again would never end.
  if left > 0 and (taken > 0 or #args == 3 or (claim.pops == 0 and not claim.has_waiting)) then
    reply[2] = '1'
    queue.leave_wake(q)
  end
  return reply
end
