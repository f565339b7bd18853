-- Put back what an incarnation still has and forget it; atomic so that no job is left with nobody.
-- Reply: how many jobs are left for another call; 0: it is forgotten.
local BATCH = limits.MOVED_A_CALL

function functions.retire(roots, args)
  local incarnation = unpack(args)
  local unit = unit.open(roots[1])
  local processing = keys.processing(unit.root, incarnation)
  local ids = unit.call('SRANDMEMBER', processing, BATCH)
  for _, id in ipairs(ids) do
    local job = attempts.of(unit, incarnation, id)
    if job then
      attempts.put_back(unit, job)
    end
  end
  if #ids == unit.call('SCARD', processing) then
    incarnations.note_left(unit, incarnation, 'retired')
  end
  -- A token that ends with it must not leave jobs unseen.
  wake.all(unit)
  lines.close(unit)
  local left = unit.call('SCARD', processing)
  if left == 0 then
    incarnations.delete(unit, incarnation)
    unit.call('HDEL', keys.beats(unit.root), incarnation)
  end
  return left
end
