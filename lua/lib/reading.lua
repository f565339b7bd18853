-- A job's record as the words of a reply, for who reads all of it.

local PARTS = { 'state', 'big', 'more', 'generation', 'at_ms', 'created_ms', 'run_ms', 'epoch', 'nonce' }

-- Return the due time; 1 or 0 and the payload; 1 or 0 and the result; the number of errors, the errors; the record's
-- fields and the parts of two of them, with their values. Nil where there is no record.
function reading.words(unit, id)
  local fields = unit.call('HGETALL', keys.job(unit.root, id))
  local known = {}
  for i = 1, #fields, 2 do
    known[fields[i]] = fields[i + 1]
  end
  local parts = { record.parts(known.head) }
  if not parts[1] then
    return nil
  end
  parts[8], parts[9] = record.claim_parts(known.claim)
  local words = { '' }
  if record.is_delayed(parts[1]) then
    words[1] = unit.call('ZSCORE', keys.delayed(unit.root), record.member(id, parts[6], parts[4])) or ''
  end
  -- A key beside the record is read only where the record says that it is this job's.
  for _, name in ipairs({ 'payload', 'result' }) do
    local value = (name == 'payload' or parts[1] == 'completed')
      and (known[name] or unit.call('GET', keys[name](unit.root, id)))
    words[#words + 1] = value and '1' or '0'
    words[#words + 1] = value or ''
  end
  local has_errors = known.failures or known.stalls or (known.error or '') ~= ''
  local errors = has_errors and unit.call('LRANGE', keys.errors(unit.root, id), 0, -1) or {}
  words[#words + 1] = numbers.text(#errors)
  for _, error in ipairs(errors) do
    words[#words + 1] = error
  end
  for _, value in ipairs(fields) do
    words[#words + 1] = value
  end
  for i, name in ipairs(PARTS) do
    words[#words + 1] = name
    words[#words + 1] = parts[i]
  end
  return words
end
