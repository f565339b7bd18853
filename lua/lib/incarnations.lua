-- Incarnations: who may claim, and when each beat last.
local DEFAULT_LEASE_MS = '' .. limits.DEFAULT_LEASE_MS

-- A field of an incarnation, false when it is unknown or condemned: its lease, or the last number of its calls.
function incarnations.get(unit, incarnation, field)
  local value = unit.try('HGET', keys.worker(unit.root, incarnation), field)
  return value and not value.err and value
end

-- Tell that one has joined or left. `words` are its event's: who it is, and before that why one has left.
function incarnations.note(unit, kind, incarnation, words)
  events.add(unit, kind, incarnation, '', events.tail('0', incarnation, '', '', words))
end

-- Tell why one has left, unless it is unknown or condemned. An older release has not said who it is.
function incarnations.note_left(unit, incarnation, why)
  if incarnations.get(unit, incarnation, 'lease_ms') then
    incarnations.note(unit, 'left', incarnation, why .. '\t' .. (incarnations.get(unit, incarnation, 'who') or ''))
  end
end

function incarnations.delete(unit, incarnation)
  unit.call('UNLINK', keys.worker(unit.root, incarnation))
  moves.forget_owner(unit, incarnation)
end

-- The count of a beat, its lease and its time; of rubbish those of an incarnation that never beat.
function incarnations.beat(beat)
  local count, lease_ms, at_ms = string.match(beat or '', '^(%-?%d+) (%d+) (%d+)$')
  return count or '0', lease_ms or DEFAULT_LEASE_MS, at_ms or '0'
end

-- How long ago a beat came. Its value is the count (-1: condemned), the lease and the server's time.
function incarnations.silent_ms(unit, beat)
  local _, _, at_ms = incarnations.beat(beat)
  return math.max(0, unit.now_ms - numbers.read(at_ms, 0)) -- the clock may have been set back
end

-- Whether a beat is no older than its lease: a guess for who looks, and nobody's death sentence.
function incarnations.is_live(unit, beat)
  local count, lease_ms, at_ms = incarnations.beat(beat)
  return count ~= '-1' and unit.now_ms - numbers.read(at_ms, 0) <= tonumber(lease_ms)
end

-- The beats of about n incarnations by their names, or of all if there are no more, and whether there are others.
function incarnations.some_beats(unit, n)
  local cursor, flat = unpack(unit.call('HSCAN', keys.beats(unit.root), '0', 'COUNT', n))
  return flat, cursor ~= '0'
end

-- An incarnation as a reply: its id, beat, ms since that, info, registered_ms, and how many jobs it has.
function incarnations.words(unit, incarnation, beat)
  local v = unit.call('HMGET', keys.worker(unit.root, incarnation), 'info', 'registered_ms')
  return {
    incarnation, beat, numbers.text(incarnations.silent_ms(unit, beat)), v[1] or '', v[2] or '0',
    numbers.text(unit.call('SCARD', keys.processing(unit.root, incarnation))),
  }
end
