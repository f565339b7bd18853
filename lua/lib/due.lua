-- Delayed jobs whose time has come.
local BATCH = limits.BATCH_LIMIT

-- How long until the next job is due, as text; -1: there is none.
function due.next_ms(unit)
  local first = unit.try('ZRANGE', keys.delayed(unit.root), '0', '0', 'WITHSCORES') -- none, if the key is a stranger's
  return first[2] and numbers.text(math.max(0, first[2] - unit.now_ms)) or '-1'
end

local function promote(unit, member)
  local id = record.id_of(member)
  local job = record.of_member(unit, member)
  if not job then
    moves.undelay(unit, member)
  end
  if not id then
    damage.note(unit.root, 'delayed')
  elseif not job then
    finish.fail_headless(unit, id, 'scheduled')
    record.erase_lost(unit, id)
  elseif not job.is_sound then
    finish.fail_damaged(unit, job)
  elseif record.is_overdue(unit, job) then
    finish.fail(unit, job, 'expired', '', '', '')
  else
    moves.move(unit, job, 'ready', 'queued', '', 'due', 'tails')
  end
end

-- Make ready what fell due, end what expired while it waited, and open the gates that are due; return the ms to what
-- is due next.
function due.promote(unit)
  local due_ms = due.next_ms(unit)
  if due_ms ~= '0' then
    return due_ms
  end
  local key = keys.delayed(unit.root)
  for _, member in ipairs(unit.call('ZRANGEBYSCORE', key, '-inf', unit.now_text, 'LIMIT', 0, BATCH)) do
    if member ~= record.GATES then
      promote(unit, member)
    end
  end
  moves.flush(unit)
  if settings.of(unit).has_gates then
    lines.open_due(unit)
    moves.flush(unit)
  end
  return due.next_ms(unit)
end
