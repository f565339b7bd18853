-- All that is kept of one job. Reply: nothing, or: the due time; 1 or 0 and the payload; 1 or 0 and the
-- result; the number of errors, the errors; the record's fields and the parts of two of them, with their
-- values.

local PARTS = { 'state', 'big', 'more', 'generation', 'at_ms', 'created_ms', 'run_ms', 'epoch', 'nonce' }

function functions.get(roots, args)
  local unit = unit.open(roots[1])
  local id = args[1]
  local fields = unit.call('HGETALL', keys.job(unit.root, id))
  local known = {}
  for i = 1, #fields, 2 do
    known[fields[i]] = fields[i + 1]
  end
  local parts = { record.parts(known.head) }
  if not parts[1] then
    return {}
  end
  parts[8], parts[9] = record.claim_parts(known.claim)
  local reply = { '' }
  if record.is_delayed(parts[1]) then
    reply[1] = unit.call('ZSCORE', keys.delayed(unit.root), record.member(id, parts[6], parts[4])) or ''
  end
  -- A key beside the record is read only where the record says that it is this job's.
  for _, name in ipairs({ 'payload', 'result' }) do
    local value = (name == 'payload' or parts[1] == 'completed')
      and (known[name] or unit.call('GET', keys[name](unit.root, id)))
    reply[#reply + 1] = value and '1' or '0'
    reply[#reply + 1] = value or ''
  end
  local has_errors = known.failures or known.stalls or (known.error or '') ~= ''
  local errors = has_errors and unit.call('LRANGE', keys.errors(unit.root, id), 0, -1) or {}
  reply[#reply + 1] = numbers.text(#errors)
  for _, error in ipairs(errors) do
    reply[#reply + 1] = error
  end
  for _, value in ipairs(fields) do
    reply[#reply + 1] = value
  end
  for i, name in ipairs(PARTS) do
    reply[#reply + 1] = name
    reply[#reply + 1] = parts[i]
  end
  return reply
end
