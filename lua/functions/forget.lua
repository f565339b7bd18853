-- Take a condemned incarnation off the list, unless something of it is left. Reply: ok or kept.
function functions.forget(keys, args)
  local incarnation = unpack(args)
  local q = queue.open(keys[1])
  local beat = q.call('HGET', q.root .. ':beats', incarnation)
  if q.call('SCARD', q.root .. ':processing:' .. incarnation) > 0 or (beat and string.sub(beat, 1, 3) ~= '-1 ') then
    return 'kept'
  end
  q.call('HDEL', q.root .. ':beats', incarnation)
  worker.delete(q, incarnation)
  return 'ok'
end
