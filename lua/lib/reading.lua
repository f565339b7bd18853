-- A job's record as a reply, for who reads all of it.

-- Return the id, when it is due, the payload and the result that lie beside the record, the errors, the record's fields
-- with their values, and of what its head and claim say: the state, the times of the last change and the creation, how
-- long it ran, the epoch and the nonce. Nil where there is no record, or not in the state that is asked for.
function reading.words(unit, id, asked_state)
  local fields = unit.call('HGETALL', keys.job(unit.root, id))
  local known = {}
  for i = 1, #fields, 2 do
    known[fields[i]] = fields[i + 1]
  end
  local state, _, _, generation, at_ms, created_ms, run_ms = record.parts(known.head)
  if not state or (asked_state and state ~= asked_state) then
    return nil
  end
  local epoch, nonce = record.claim_parts(known.claim)
  local due_ms = record.is_delayed(state)
    and unit.call('ZSCORE', keys.delayed(unit.root), record.member(id, created_ms, generation)) or ''
  -- A key beside the record is read only where the record says that it is this job's.
  local payload = not known.payload and unit.call('GET', keys.payload(unit.root, id))
  local result = state == 'completed' and not known.result and unit.call('GET', keys.result(unit.root, id))
  local has_errors = known.failures or known.stalls or (known.error or '') ~= ''
  local errors = has_errors and unit.call('LRANGE', keys.errors(unit.root, id), '0', '-1') or {}
  return { id, due_ms, payload, result, errors, fields, state, at_ms, created_ms, run_ms, epoch, nonce }
end

-- Return how many bytes such a reply has in its parts of any length.
function reading.size(words)
  local size = #(words[3] or '') + #(words[4] or '')
  for _, list in ipairs({ words[5], words[6] }) do
    for _, word in ipairs(list) do
      size = size + #word
    end
  end
  return size
end
