-- Condemn an incarnation whose beat has not moved since the caller looked, and take its jobs back;
-- atomic because a beat in between must win. Reply: moved, or how many jobs are left. `words` are those of the error.
local BATCH = limits.MOVED_A_CALL

function functions.reap(roots, args)
  local incarnation, seen, error, words = unpack(args)
  local unit = unit.open(roots[1])
  local beats = keys.beats(unit.root)
  local beat = unit.call('HGET', beats, incarnation)
  local count, lease_ms, at_ms = incarnations.beat(beat)
  if not beat or (count ~= '-1' and count ~= seen) then
    return 'moved'
  end
  local processing = keys.processing(unit.root, incarnation)
  local ids = unit.call('SRANDMEMBER', processing, BATCH)
  incarnations.note_left(unit, incarnation, 'reaped')
  -- Condemned for good: every later call of it answers gone.
  unit.call('HSET', beats, incarnation, '-1 ' .. lease_ms .. ' ' .. at_ms)
  unit.call('UNLINK', keys.worker(unit.root, incarnation))
  for _, id in ipairs(ids) do
    local job = attempts.of(unit, incarnation, id)
    if job then
      attempts.stall(unit, job, error, words, '')
    end
  end
  wake.all(unit)
  lines.close(unit)
  return numbers.text(unit.call('SCARD', processing))
end
