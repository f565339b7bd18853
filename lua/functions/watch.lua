-- Register an inbox for the ends of jobs and say how each stands; atomic so that no end falls between.
-- Reply: state, reason, whole | cut | none, body a job; an empty state: there is no such job.
local MESSAGE_LIMIT = limits.MESSAGE_LIMIT_BYTES

local function stand(q, id, inbox)
  local record = job.load_waiting(q, id)
  if not record then
    return '', '', 'none', ''
  end
  if job.is_overdue(q, record) and not job.is_terminal(record.state) and record.state ~= 'active' then
    finish.fail(q, record, 'expired', '', '', '')
    record.state = 'failed'
  end
  if record.state == 'completed' then
    local result = q.call('HGET', record.key, 'result') or q.call('GET', keys.result(q.root, id))
    if not result then
      return 'completed', '', 'none', ''
    elseif #result > MESSAGE_LIMIT then
      return 'completed', '', 'cut', ''
    end
    return 'completed', '', 'whole', result
  elseif record.state == 'failed' then
    local v = q.call('HMGET', record.key, 'reason', 'error')
    local has_error = record.has_errors or (v[2] or '') ~= ''
    return 'failed', v[1] or 'expired', 'whole', has_error and q.call('LINDEX', keys.errors(q.root, id), 0) or ''
  elseif record.state ~= 'cancelled' and inbox ~= '' then
    job.add_inbox(q, record.key, record.head, record.inbox, inbox)
  end
  return record.state, '', 'none', ''
end

function functions.watch(roots, args)
  local q = queue.open(roots[1])
  local reply = {}
  for i = 2, #args do
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = stand(q, args[i], args[1])
  end
  queue.close(q)
  return reply
end
