-- Take a condemned incarnation off the list, unless something of it is left. Reply: ok or kept.
function functions.forget(roots, args)
  local incarnation = unpack(args)
  local unit = unit.open(roots[1])
  local beat = unit.call('HGET', keys.beats(unit.root), incarnation)
  if unit.call('SCARD', keys.processing(unit.root, incarnation)) > 0 or (beat and string.sub(beat, 1, 3) ~= '-1 ') then
    return 'kept'
  end
  unit.call('HDEL', keys.beats(unit.root), incarnation)
  incarnations.delete(unit, incarnation)
  return 'ok'
end
