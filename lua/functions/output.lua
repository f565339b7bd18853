-- Pieces of a job's output behind a cursor. Reply: cursor and piece, in order.
flags.output = { 'no-writes' }

function functions.output(keys, args)
  local id, after, limit = unpack(args)
  local q = queue.open(keys[1])
  local reply = {}
  if not q.call('HGET', job.key(q, id), 'output') then
    return reply -- what may lie there is of a job whose record was lost
  end
  for _, entry in ipairs(q.call('XRANGE', q.root .. ':output:' .. id, '(' .. after, '+', 'COUNT', limit)) do
    reply[#reply + 1] = entry[1]
    reply[#reply + 1] = entry[2][2]
  end
  return reply
end
