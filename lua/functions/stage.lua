-- Append the words of jobs to a stage, unless they lie there already; atomic because a call may be made twice.
-- Arguments: the write's id, token, the length that is expected, ttl_ms, then the words of the jobs in MessagePack,
-- nothing where there are none. Reply: the length then, which is in how many calls it came, or STAGELOST.
function functions.stage(roots, args)
  local write_id, token, before, ttl_ms, packed = unpack(args)
  local unit, name = unit.open(roots[1]), staged.name(token, write_id)
  local length = staged.length(unit, name)
  if length > 0 and staged.is_committed(unit, name) then
    return staged.lost(token, write_id, 'is committed')
  elseif length < before + 0 then
    return staged.lost(token, write_id, 'has length ' .. length .. ', not ' .. before)
  elseif length == before + 0 and packed then
    staged.append(unit, name, packed)
  end
  unit.call('PEXPIRE', keys.stage(unit.root, name), ttl_ms)
  return staged.length(unit, name)
end
