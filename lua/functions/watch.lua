-- Register a channel for the ends of jobs and say how each stands; atomic so that no end falls between.
-- Reply: state, reason, whole | cut | none, body a job; an empty state: there is no such job.
local MESSAGE_LIMIT = limits.MESSAGE_LIMIT_BYTES

local function stand(unit, id, channel)
  local job = record.load_waiting(unit, id)
  if not job then
    return '', '', 'none', ''
  end
  if record.is_overdue(unit, job) and not record.is_terminal(job.state) and job.state ~= 'active' then
    finish.fail(unit, job, 'expired', '', '', '')
  end
  if job.state == 'completed' then
    local result = unit.call('HGET', job.key, 'result') or unit.call('GET', keys.result(unit.root, id))
    if not result then
      return 'completed', '', 'none', ''
    elseif #result > MESSAGE_LIMIT then
      return 'completed', '', 'cut', ''
    end
    return 'completed', '', 'whole', result
  elseif job.state == 'failed' then
    local v = unit.call('HMGET', job.key, 'reason', 'error')
    local has_error = job.has_errors or (v[2] or '') ~= ''
    return 'failed', v[1] or 'expired', 'whole', has_error and unit.call('LINDEX', keys.errors(unit.root, id), 0) or ''
  elseif job.has_next and channel ~= '' then
    successors.add_channel(unit, id, channel)
  elseif job.state ~= 'cancelled' and channel ~= '' then
    record.add_channel(unit, job, channel)
  end
  return job.state, '', 'none', ''
end

function functions.watch(roots, args)
  local unit = unit.open(roots[1])
  local reply = {}
  for i = 2, #args do
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = stand(unit, args[i], args[1])
  end
  lines.close(unit)
  return reply
end
