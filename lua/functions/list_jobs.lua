-- One page of jobs in a state, without payloads, from behind the last entry of the page before, which is looked for
-- anew: others may have come and gone. Reply: the next cursor ('' at the end), WIDTH strings a job.

local FIELDS = { 'head', 'claim', 'task', 'tier', 'failures', 'stalls', 'reason', 'error' }

-- Whether a place is that of the record which is there now.
local function is_its_place(row, state, created_ms, generation)
  if record.is_delayed(state) then
    return row.member == record.member(row.id, created_ms, generation)
  end
  return not row.gen or row.gen == generation
end

-- The beginning of a job's last error, in which its message is; '' where it had none. The rest of an error is long.
local function last_error(unit, id, kind)
  local error = kind ~= '' and unit.call('LINDEX', keys.errors(unit.root, id), '0')
  return error and string.sub(error, 1, limits.ROW_ERROR_BYTES) or ''
end

function functions.list_jobs(roots, args)
  local state, cursor, limit = args[1], args[2], tonumber(args[3])
  local unit = unit.open(roots[1])
  local found = pages.entries(unit, state, cursor, limit)
  local reply = { #found == limit and found.cursor or '' }
  for _, row in ipairs(found) do
    local v = unit.call('HMGET', keys.job(unit.root, row.id), unpack(FIELDS))
    local its_state, _, _, generation, at_ms, created_ms, run_ms = record.parts(v[1])
    if its_state == state and is_its_place(row, state, created_ms, generation) then
      local epoch, nonce = record.claim_parts(v[2])
      local words = {
        row.id, row.due_ms or '', state, v[3], v[4] or '', v[5] or '', v[6] or '', epoch, created_ms, at_ms, run_ms,
        nonce, v[7] or '', v[8] or '', last_error(unit, row.id, v[8] or ''),
      }
      for _, word in ipairs(words) do
        reply[#reply + 1] = word
      end
    end
  end
  return reply
end
