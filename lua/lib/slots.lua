-- Heavy jobs: those that hold more than one slot of their lane. A claim keeps of each lane, in a `room`, how many slots
-- its caller asks for and has in all, the jobs that it may take yet, and those that it has to put back.
local MOST, LOOKS = limits.SLOTS_LIMIT, limits.SLOTS_LOOKS

-- The room of a claim in a lane, for at most `limit` jobs; `total` is the word that says how many slots there are. What
-- only heavy jobs change is not there until one comes, for every claim has a room.
function slots.room(unit, asked, total, limit)
  return { asked = asked, total = total, limit = limit, before = #unit.joined }
end

-- How many slots a field says, nil where that is one, or rubbish.
function slots.read(word)
  local n = numbers.digits(word) and tonumber(word)
  return n and n > 1 and math.min(n, MOST) or nil
end

-- Whether a job may start that needs n slots. If it needs more than are left, nothing behind it is taken.
function slots.fit(unit, room, n)
  if n > tonumber(room.total) then
    room.is_held = true
    return false
  elseif n > room.asked - (room.extra or 0) - (#unit.joined - room.before) then
    room.is_held, room.awaited, room.limit = true, n, 0
    return false
  end
  return true
end

-- Note that a job starts which takes n slots.
function slots.take(room, n)
  room.extra = (room.extra or 0) + n - 1
  room.limit = math.min(room.limit, room.asked - room.extra)
end

-- Keep an entry that does not fit, with its line and number, until the claim has looked at those behind it.
function slots.hold(room, line, entry, number)
  room.is_held = false
  room.held = room.held or {}
  room.held[#room.held + 1] = { line, entry, number }
  if #room.held == LOOKS then
    room.limit = 0
  end
end

-- How many ready jobs of a lane a claim has left there since they do not fit.
function slots.held(call, lane)
  return call.held and call.held[lane] or 0
end

-- Put those that were held back to their places. Who has slots enough looks, if the caller only waits for its own.
function slots.put_back(unit, call, lane, room)
  for i = #room.held, 1, -1 do
    local line, entry, number = unpack(room.held[i])
    entries.push_back(unit, line, { entry }, { number }, 0)
  end
  call.held = call.held or {}
  call.held[lane] = #room.held
  if room.awaited then
    call.awaited = (call.awaited or '') .. ' ' .. lane .. ' ' .. numbers.text(room.awaited)
    wake.note(unit, lane)
  end
end
