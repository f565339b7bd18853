-- All that is kept of one job. Reply: nothing, or: the due time; 1 or 0 and the payload; 1 or 0 and the
-- result; the number of errors, the errors; the record's fields and the parts of two of them, with their
-- values.
flags.get = { 'no-writes' }

local PARTS = { 'state', 'big', 'more', 'gen', 'at', 'created', 'run', 'epoch', 'claim' }

function functions.get(keys, args)
  local q = queue.open(keys[1])
  local id = args[1]
  local fields = q.call('HGETALL', job.key(q, id))
  local parts, claim = {}, nil
  for i = 1, #fields, 2 do
    if fields[i] == 'head' then
      parts = { job.parts(fields[i + 1]) }
    elseif fields[i] == 'claim' then
      claim = fields[i + 1]
    end
  end
  if not parts[1] then
    return {}
  end
  parts[8], parts[9] = job.claim_parts(claim)
  local reply = { '' }
  if job.is_delayed(parts[1]) then
    reply[1] = q.call('ZSCORE', q.root .. ':delayed', job.member(id, parts[6], parts[4])) or ''
  end
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
  -- They come last, since the claim's nonce goes by the name of the field.
  for i, name in ipairs(PARTS) do
    reply[#reply + 1] = name
    reply[#reply + 1] = parts[i]
  end
  return reply
end
