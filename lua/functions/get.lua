-- All that is kept of one job. Reply: nothing, or: the due time; 1 or 0 and the payload; 1 or 0 and the
-- result; the number of errors, the errors; the record's fields and values.
flags.get = { 'no-writes' }

function functions.get(keys, args)
  local q = queue.open(keys[1])
  local id = args[1]
  local fields = q.call('HGETALL', job.key(q, id))
  if #fields == 0 then
    return {}
  end
  local reply = { q.call('ZSCORE', q.root .. ':delayed', id) or '' }
  for _, name in ipairs({ 'payload', 'result' }) do
    local value = q.call('HGET', job.key(q, id), name) or q.call('GET', q.root .. ':' .. name .. ':' .. id)
    reply[#reply + 1] = value and '1' or '0'
    reply[#reply + 1] = value or ''
  end
  local errors = q.call('LRANGE', q.root .. ':errors:' .. id, 0, -1)
  reply[#reply + 1] = queue.text(#errors)
  for _, error in ipairs(errors) do
    reply[#reply + 1] = error
  end
  for _, value in ipairs(fields) do
    reply[#reply + 1] = value
  end
  return reply
end
