-- Queue dead letters again, counts and error history reset. Reply: how many were.
flags.redrive = {}

function functions.redrive(keys, args)
  local q = queue.open(keys[1])
  local n = 0
  for _, id in ipairs(args) do
    local record = job.load_waiting(q, id)
    if record and record.state == 'failed' then
      q.call('ZREM', q.root .. ':dead', id)
      q.call('UNLINK', q.root .. ':errors:' .. id)
      q.call(
        'HDEL', record.key, 'attempts', 'stalls', 'expires', 'released', 'reason', 'error', 'cancel', 'inbox',
        'joined'
      )
      record.run = ''
      q.call('PERSIST', record.key)
      q.call('PERSIST', q.root .. ':payload:' .. id)
      if record.big ~= '' then
        -- It was cut to what the dead letter had; how much of its own is gone is not known any more.
        q.call('PEXPIRE', q.root .. ':output:' .. id, job.OUTPUT_TTL_MS)
      end
      job.make_ready(q, record, q.tails)
      queue.event(q, 'queued', id, record.task, record.epoch, '', '', '', '')
      n = n + 1
    end
  end
  queue.close(q)
  return n
end
