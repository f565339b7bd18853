-- End waiting jobs and ask active ones to stop. Reply: a verdict an id. An unknown id leaves no trace.
local VERDICTS = { cancelled = 'cancelled', completed = 'finished', failed = 'finished' }

local function cancel(q, id)
  local record = job.load_waiting(q, id)
  if not record then
    return 'not_found'
  elseif VERDICTS[record.state] then
    return VERDICTS[record.state]
  elseif record.state == 'active' then
    local asked = keys.cancels(q.root, job.owner(record))
    job.add_fields(q, record.key, record.head, 'cancel', '1')
    q.call('SADD', asked, id)
    -- Its worker beats at once when it hears of this, and the answer says which jobs.
    local channel = q.call('HGET', keys.worker(q.root, job.owner(record)), 'channel')
    if channel and channel ~= '' then
      queue.publish(q, channel, table.concat({ q.root, id, 'active', '', 'none', '' }, '\n'))
    end
    return 'requested'
  end
  finish.cancel(q, record, '', '')
  return 'cancelled'
end

function functions.cancel(roots, args)
  local q = queue.open(roots[1])
  local verdicts = {}
  for i, id in ipairs(args) do
    verdicts[i] = cancel(q, id)
  end
  queue.close(q)
  return verdicts
end
