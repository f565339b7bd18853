-- How jobs stand; nothing is changed, and a job whose time has come is left as it is.
-- Reply: a word and a body a job. The word is '' where there is no such job, else its state, and behind a space the
-- reason, or of a completed one `cut` or `none` where its body is not the result.
local MESSAGE_LIMIT = limits.MESSAGE_LIMIT_BYTES

-- A result that lies beside the record.
local function result_of(unit, id)
  local result = unit.call('GET', keys.result(unit.root, id))
  if not result then
    return 'completed none', ''
  elseif #result > MESSAGE_LIMIT then
    return 'completed cut', ''
  end
  return 'completed', result
end

local function stand(unit, id, key, head)
  local state = record.parts(head)
  if state == 'completed' then
    return result_of(unit, id)
  elseif state ~= 'failed' and state ~= 'cancelled' then
    return state or '', ''
  end
  local v = unit.call('HMGET', key, 'reason', 'error', 'failures', 'stalls')
  local reason = v[1] or (state == 'failed' and 'expired' or '')
  local word = reason ~= '' and state .. ' ' .. reason or state
  local has_error = state == 'failed' and ((v[2] or '') ~= '' or v[3] or v[4])
  return word, has_error and unit.call('LINDEX', keys.errors(unit.root, id), '0') or ''
end

function functions.outcomes(roots, ids)
  local unit = unit.open(roots[1])
  local prefix, reply, n = keys.job(unit.root, ''), {}, 0
  for i = 1, #ids do
    local id = ids[i]
    local key = prefix .. id
    local v = unit.try('HMGET', key, 'head', 'result')
    local head, result = v[1], v[2]
    if result and record.parts(head) == 'completed' then
      reply[n + 1], reply[n + 2] = 'completed', result
    else
      reply[n + 1], reply[n + 2] = stand(unit, id, key, head)
    end
    n = n + 2
  end
  return reply
end
