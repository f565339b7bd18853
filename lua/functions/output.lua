-- Pieces of a job's output behind a cursor. Reply: cursor and piece, in order.

function functions.output(roots, args)
  local id, after, limit = unpack(args)
  local unit = unit.open(roots[1])
  local reply = {}
  if not unit.call('HGET', keys.job(unit.root, id), 'output') then
    return reply -- what may lie there is of a job whose record was lost
  end
  for _, entry in ipairs(unit.call('XRANGE', keys.output(unit.root, id), '(' .. after, '+', 'COUNT', limit)) do
    reply[#reply + 1] = entry[1]
    reply[#reply + 1] = entry[2][2]
  end
  return reply
end
