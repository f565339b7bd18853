-- End waiting jobs and ask active ones to stop, or end successors alone. Reply: a verdict an id. An
-- unknown id leaves no trace.
local VERDICTS = { cancelled = 'cancelled', completed = 'finished', failed = 'finished' }

local function ask_to_stop(unit, job)
  moves.ask_to_stop(unit, job)
  -- Its worker beats at once when it hears of this, and the answer says which jobs.
  local channel = unit.call('HGET', keys.worker(unit.root, record.owner(job)), 'channel')
  if channel and channel ~= '' then
    wake.publish(unit, channel, table.concat({ unit.root, job.id, 'active', '', 'none', '' }, '\n'))
  end
end

local function cancel(unit, id, only_next)
  if only_next then
    return finish.cancel_next(unit, id) and 'cancelled' or 'not_found'
  end
  local job = record.load_waiting(unit, id)
  if not job then
    return 'not_found'
  elseif VERDICTS[job.state] then
    return VERDICTS[job.state]
  elseif job.state == 'active' then
    ask_to_stop(unit, job)
    if job.has_next then
      finish.cancel_next(unit, id)
    end
    return 'requested'
  end
  finish.cancel(unit, job, '', '')
  return 'cancelled'
end

function functions.cancel(roots, args)
  local unit = unit.open(roots[1])
  local only_next = args[1] == '1'
  local verdicts = {}
  for i = 2, #args do
    verdicts[i - 1] = cancel(unit, args[i], only_next)
  end
  lines.close(unit)
  return verdicts
end
