-- How those hear who wait for something: tokens for consumers, messages on channels.
-- Leave one wake-up token of a lane where none is: whoever takes it claims.
function wake.leave(unit, lane, call)
  local key = keys.wake(unit.root, lane)
  if not (unit.settings or settings.of(unit)).is_paused and call('LLEN', key) == 0 then
    call('RPUSH', key, '1')
  end
end

-- Note a lane that is to get a token when the call closes.
function wake.note(unit, lane)
  if unit.wakes then
    unit.wakes[lane] = true
  else
    unit.wakes = { [lane] = true }
  end
end

-- The job that waits for what is due first: a delayed one, or one in the line of a gate.
local function first_due(unit)
  local member = unit.call('ZRANGE', keys.delayed(unit.root), '0', '0')[1]
  if member ~= record.GATES then
    return member and record.id_of(member)
  end
  local name = unit.call('ZRANGE', keys.gates(unit.root), '0', '0')[1]
  return name and unit.call('ZRANGE', keys.line(unit.root, name), '0', '0')[1]
end

-- Have the consumers of every lane look that has something ready, or the first job to fall due.
function wake.all(unit)
  for _, lane in ipairs(counts.lanes(unit)) do
    wake.note(unit, lane)
  end
  local id = first_due(unit)
  if id then
    wake.note(unit, record.lane(unit, id))
  end
end

-- Leave the tokens that the call has noted.
function wake.write(unit, call)
  if unit.wakes then
    for lane in pairs(unit.wakes) do
      wake.leave(unit, lane, call)
      unit.wakes[lane] = nil
    end
  end
end

-- Tell a channel. The word is a hint, so nobody's call fails when the user has no right to send it.
function wake.publish(unit, channel, message)
  local reply = unit.try('PUBLISH', channel, message)
  if type(reply) == 'table' then
    damage.note(unit.root, 'publish')
  end
end
