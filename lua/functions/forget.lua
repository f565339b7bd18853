-- Take a condemned incarnation off the list, unless something of it is left. Reply: ok or kept.
function functions.forget(roots, args)
  local incarnation = unpack(args)
  local q = queue.open(roots[1])
  local beat = q.call('HGET', keys.beats(q.root), incarnation)
  if q.call('SCARD', keys.processing(q.root, incarnation)) > 0 or (beat and string.sub(beat, 1, 3) ~= '-1 ') then
    return 'kept'
  end
  q.call('HDEL', keys.beats(q.root), incarnation)
  worker.delete(q, incarnation)
  return 'ok'
end
