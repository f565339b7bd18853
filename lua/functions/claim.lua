-- Make due jobs ready and hand the best ones to an incarnation; atomic because a job must have one owner.
-- Reply: status, has_more, ms to the next due job (-1: none), then five strings a job: id, task, payload,
-- numbers, options; the numbers are epoch, failures, stalls, created, ms waited, and its slots if it has several.
-- Behind has_more come, a blank between, each lane and the slots for which its next job waits.
-- Arguments: incarnation, number, nonce, of each lane its name, how many slots are free, and how many there are.
local BATCH, BATCH_BYTES, LOOKS = limits.BATCH_LIMIT, limits.BATCH_LIMIT_BYTES, limits.CLAIM_LOOKS
local TURNS, STRUCK = limits.CLAIM_TURNS, limits.STRUCK_LOOKS

-- Whether this claim has brought jobs in, or may do so as it opens gates.
local function has_new(unit)
  return unit.gates or (unit.tails and next(unit.tails)) or (unit.ordered and next(unit.ordered))
end

-- Take up to `most` entries of a lane whose tiers age: of its best tier, or of the one that is due by its age.
local function pop_aging(unit, call, words, lane, most)
  local list, popped, its_numbers = aging.pop(unit, call.aging, lane)
  if list then
    return list, popped, its_numbers, true
  end
  words[#words] = numbers.text(aging.most(call.aging, most))
  return entries.pop(unit, words, lane)
end

-- Take up to `limit` jobs of one lane, best tier first. Return how many, and whether to look for more: not who took
-- nothing although it had room, since that can't take what is left, and to wake it again would never end.
local function drain(unit, call, lane, limit, room)
  local words = keys.pop_words(unit.root, lane)
  local taken, looks, waiting, is_drained = 0, LOOKS, {}, false
  call.room = room
  while taken < room.limit and looks > 0 and call.bytes > 0 and call.turns > 0 do
    local before, most = taken, math.min(room.limit - taken, looks, 50)
    local list, popped, its_numbers, is_aged
    if call.aging then
      list, popped, its_numbers, is_aged = pop_aging(unit, call, words, lane, most)
    else
      words[#words] = numbers.text(most)
      list, popped, its_numbers = entries.pop(unit, words, lane)
    end
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
      elseif room.is_held then
        slots.hold(room, list, entry, its_numbers[i])
      end
      if call.bytes <= 0 or taken >= room.limit then
        if i < #popped then
          entries.push_back(unit, list, popped, its_numbers, i)
        end
        break
      end
    end
    if call.aging then
      aging.note(call.aging, taken - before, is_aged)
    end
    if call.is_struck then
      looks = looks - call.laid_aside * (STRUCK - 1)
      call.laid_aside = 0
    end
    if unit.turns_over then
      call.turns = call.turns - #unit.turns_over
      lines.let_next_in(unit)
    end
  end
  for _, passed in ipairs(waiting) do
    entries.push_behind(unit, unpack(passed))
  end
  if room.held then
    slots.put_back(unit, call, lane, room)
  end
  moves.count_started(unit, lane, taken)
  if room.awaited or (is_drained and #waiting == 0 and not has_new(unit)) then
    return taken, false
  end
  return taken, taken > 0 or limit == 0 or call.bytes <= 0 or (looks <= 0 and #waiting == 0)
end

-- How many more jobs may start, where so many may be active in the queue.
local function may_start(unit, max_active)
  local active = tonumber(unit.call('HGET', keys.counts(unit.root), 'active')) or 0
  return math.min(BATCH, math.max(0, max_active - active))
end

-- Leave a token where a lane has more for who takes it.
local function pass_on(unit, call, lanes, reply)
  if unit.queued == 0 then
    return
  end
  for _, lane in ipairs(lanes) do
    if counts.ready(unit, lane) > (call.held and slots.held(call, lane) or 0) then
      wake.leave(unit, lane, unit.call)
      reply[2] = '1'
    end
  end
end

-- The status of a claim that is made. Behind it come, a blank before each, `strikes=<version>` where any has
-- conditions, and `weight=<n>` where one is set.
local function status(its)
  local word = 'ok'
  if its.strikes_version ~= 0 then
    word = word .. ' strikes=' .. numbers.text(its.strikes_version)
  end
  return its.weight ~= 0 and word .. ' weight=' .. numbers.text(its.weight) or word
end

function functions.claim(roots, args)
  local incarnation, number, nonce = unpack(args)
  local unit = unit.open(roots[1])
  local last = incarnations.get(unit, incarnation, 'claim_number')
  if not last then
    return { 'gone', '0', '-1' }
  end
  local its = settings.of(unit)
  local reply = { (its.strikes_version ~= 0 or its.weight ~= 0) and status(its) or 'ok', '0', '-1' }
  local call = {
    incarnation = incarnation, nonce = nonce, bytes = BATCH_BYTES, turns = TURNS, has_last_chance = false,
    reply = reply, starts = plain.starts('1\t' .. nonce), room = false, aging = false, is_struck = its.is_struck,
    laid_aside = 0, has_more = false,
  }
  unit.joined, unit.joiner = {}, incarnation
  if number + 0 < numbers.read(last, 0) then
    return redis.error_reply('STALECALL call ' .. number .. ' is older than ' .. last)
  elseif number == last then
    starts.again(unit, call)
    reply[3] = due.next_ms(unit)
    return reply
  end
  unit.raw('DEL', keys.woken(unit.root))
  unit.raw('HSET', keys.worker(unit.root, incarnation), 'claim_number', number)
  if its.is_paused then
    return { 'paused', '0', '-1' }
  end
  if its.aging ~= 0 then
    call.aging = aging.open(unit)
  end
  reply[3] = due.promote(unit)
  local left = {} -- lanes that may have more for the caller
  local most = its.max_active == 0 and BATCH or may_start(unit, its.max_active)
  for at = 4, #args, 3 do
    local lane, asked = args[at], tonumber(args[at + 1])
    local limit = math.min(asked, most - #unit.joined)
    local _, should_look = drain(unit, call, lane, limit, slots.room(unit, asked, args[at + 2], limit))
    if should_look then
      left[#left + 1] = lane
    end
  end
  local taken = #unit.joined
  if call.aging then
    aging.close(unit, call.aging)
  end
  if unit.gates then
    lines.open_freed(unit)
    gates.write(unit, false) -- the reply says when the next is due
    reply[3] = due.next_ms(unit)
  end
  unit:close()
  -- Who has no slot at all passes on whatever token it has; whatever ends an attempt wakes who may come then.
  if #args == 3 then
    pass_on(unit, call, counts.lanes(unit), reply)
  elseif most == BATCH or taken < most then
    pass_on(unit, call, left, reply)
  end
  if call.awaited then
    reply[2] = reply[2] .. call.awaited
  end
  return reply
end
