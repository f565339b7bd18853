-- One page of jobs in a state, without payloads, from behind the last entry of the page before, which is looked for
-- anew: others may have come and gone. Reply: the next cursor ('' at the end), WIDTH strings a job.

local FIELDS = { 'head', 'claim', 'task', 'tier', 'failures', 'stalls', 'reason', 'error', 'put_back' }

-- Whether a place is that of the record which is there now.
local function is_its_place(row, state, created_ms, generation)
  if record.is_delayed(state) then
    return row.member == record.member(row.id, created_ms, generation)
  end
  return not row.gen or row.gen == generation
end

-- The type of a dead letter's last error, or of what a waiting job was put back for, and its beginning, in which its
-- message is; the rest of an error is long.
local function its_error(unit, id, state, failures, stalls, last_type, put_back)
  local error_type, error = last_type or '', nil
  if put_back and not record.is_terminal(state) then
    local _, its_type, its_body = record.put_back(put_back, numbers.read(failures, 0) + numbers.read(stalls, 0))
    error_type, error = its_type or '', its_body
  elseif error_type ~= '' then
    error = unit.call('LINDEX', keys.errors(unit.root, id), '0')
  end
  return error_type, error and string.sub(error, 1, limits.ROW_ERROR_BYTES) or ''
end

-- One that is blocked by the active one of its id has not begun.
local function add_successor(unit, reply, id)
  local v = unit.call('HMGET', keys.next(unit.root, id), 'task', 'tier', 'created_ms', 'due_ms')
  if v[1] then
    for _, word in ipairs({ id, v[4] or '', 'blocked', v[1], v[2] or '', '', '', '0', v[3] or '' }) do
      reply[#reply + 1] = word
    end
    for _ = 1, 6 do
      reply[#reply + 1] = ''
    end
  end
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
      local error_type, error = its_error(unit, row.id, state, v[5], v[6], v[8], v[9])
      local due_ms = record.is_delayed(state) and row.due_ms or ''
      local words = {
        row.id, due_ms, state, v[3], v[4] or '', v[5] or '', v[6] or '', epoch, created_ms, at_ms, run_ms, nonce,
        v[7] or '', error_type, error,
      }
      for _, word in ipairs(words) do
        reply[#reply + 1] = word
      end
    elseif state == 'blocked' then
      add_successor(unit, reply, row.id)
    end
  end
  return reply
end
