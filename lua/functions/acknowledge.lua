-- Note how far a reader of the events has come, and trim what all have seen; atomic because events come meanwhile.
-- Arguments: the reader, the entry, an id just before that, the last event seen in it or 0. Reply: ok.
-- Errors: TOOREADERS.
function functions.acknowledge(roots, args)
  local unit = unit.open(roots[1])
  local name, id, before, number = unpack(args)
  if not readers.acknowledge(unit, name, id, before, tonumber(number)) then
    return redis.error_reply('TOOREADERS the queue has ' .. limits.READERS_LIMIT .. ' readers of its events')
  end
  return 'ok'
end
