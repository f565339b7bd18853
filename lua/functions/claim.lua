-- Make due jobs ready and hand the best ones to an incarnation; atomic because a job must have one owner.
-- Reply: status, has_more, ms to the next due job (-1: none), then five strings a job: id, task, payload,
-- numbers, options; the numbers are epoch, failures, stalls, created, ms waited.
local BATCH, BATCH_BYTES, LOOKS = limits.BATCH_LIMIT, limits.BATCH_LIMIT_BYTES, limits.CLAIM_LOOKS

-- Take up to `limit` jobs of one lane, best tier first. Return how many, and whether to look for more: not who took
-- nothing although it had room, since that can't take what is left, and to wake it again would never end.
local function drain(unit, call, lane, limit)
  local words = keys.pop_words(unit.root, lane)
  local taken, looks, waiting, is_drained = 0, LOOKS, {}, false
  while taken < limit and looks > 0 and call.bytes > 0 do
    words[#words] = numbers.text(math.min(limit - taken, looks, 50))
    local list, popped, its_numbers = entries.pop(unit, words, lane)
    if not list then
      is_drained = true
      break
    end
    looks = looks - #popped
    for i, entry in ipairs(popped) do
      local size, must_stay = starts.take(unit, call, entry, lane, its_numbers[i])
      if must_stay then
        waiting[#waiting + 1] = { list, entry }
      end
      if size then
        taken = taken + 1
        call.bytes = call.bytes - size
      end
      if call.bytes <= 0 then
        entries.push_back(unit, list, popped, its_numbers, i)
        break
      end
    end
  end
  for _, passed in ipairs(waiting) do
    entries.push_behind(unit, unpack(passed))
  end
  moves.count_started(unit, lane, taken)
  -- What this claim has brought in, or may bring in as it opens gates.
  local has_new = (unit.tails and next(unit.tails)) or (unit.ordered and next(unit.ordered)) or unit.gates
  if is_drained and #waiting == 0 and not has_new then
    return taken, false
  end
  return taken, taken > 0 or limit == 0 or call.bytes <= 0 or (looks == 0 and #waiting == 0)
end

-- How many more jobs may be active in the queue.
local function may_start(unit)
  local most = settings.of(unit).max_active
  if most == 0 then
    return BATCH
  end
  return math.max(0, most - (tonumber(unit.call('HGET', keys.counts(unit.root), 'active')) or 0))
end

-- Leave a token where a lane has more for who takes it.
local function pass_on(unit, lanes, reply)
  if unit.queued == 0 then
    return
  end
  for _, lane in ipairs(lanes) do
    if counts.ready(unit, lane) > 0 then
      wake.leave(unit, lane, unit.call)
      reply[2] = '1'
    end
  end
end

function functions.claim(roots, args)
  local incarnation, number, nonce = unpack(args)
  local unit = unit.open(roots[1])
  local last = incarnations.get(unit, incarnation, 'claim_number')
  if not last then
    return { 'gone', '0', '-1' }
  end
  local reply = { 'ok', '0', '-1' }
  local call = {
    incarnation = incarnation, nonce = nonce, bytes = BATCH_BYTES, has_last_chance = false, reply = reply,
    starts = plain.starts('1\t' .. nonce),
  }
  unit.joined, unit.joiner = {}, incarnation
  if number + 0 < numbers.read(last, 0) then
    return redis.error_reply('STALECALL ' .. number .. ' is older than ' .. last)
  elseif number == last then
    starts.again(unit, call)
    reply[3] = due.next_ms(unit)
    return reply
  end
  unit.raw('DEL', keys.woken(unit.root))
  unit.raw('HSET', keys.worker(unit.root, incarnation), 'claim_number', number)
  if settings.of(unit).is_paused then
    return { 'paused', '0', '-1' }
  end
  reply[3] = due.promote(unit)
  local left = {} -- lanes that may have more for the caller
  local most = math.min(BATCH, may_start(unit))
  for at = 4, #args, 2 do
    local lane, limit = args[at], math.min(tonumber(args[at + 1]), most - #unit.joined)
    local _, should_look = drain(unit, call, lane, limit)
    if should_look then
      left[#left + 1] = lane
    end
  end
  local taken = #unit.joined
  if unit.gates then
    lines.open_freed(unit)
    gates.write(unit, false) -- the reply says when the next is due
    reply[3] = due.next_ms(unit)
  end
  unit:close()
  -- Who has no slot at all passes on whatever token it has; whatever ends an attempt wakes who may come then.
  if #args == 3 then
    pass_on(unit, counts.lanes(unit), reply)
  elseif most == BATCH or taken < most then
    pass_on(unit, left, reply)
  end
  return reply
end
