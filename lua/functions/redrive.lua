-- Queue dead letters again, counts and error history reset. Reply: how many were.
flags.redrive = {}

function functions.redrive(roots, args)
  local q = queue.open(roots[1])
  local n = 0
  for _, id in ipairs(args) do
    local record = job.load_waiting(q, id)
    if record and record.state == 'failed' then
      q.call('ZREM', keys.dead(q.root), id)
      q.call('UNLINK', keys.errors(q.root, id))
      q.call(
        'HDEL', record.key, 'attempts', 'stalls', 'expires', 'released', 'reason', 'error', 'cancel', 'inbox',
        'joined'
      )
      record.run = ''
      q.call('PERSIST', record.key)
      q.call('PERSIST', keys.payload(q.root, id))
      if record.big ~= '' then
        -- It was cut to what the dead letter had; how much of its own is gone is not known any more.
        q.call('PEXPIRE', keys.output(q.root, id), job.OUTPUT_TTL_MS)
      end
      job.make_ready(q, record, q.tails)
      queue.event(q, 'queued', id, record.task, record.epoch, '', '', '', '')
      n = n + 1
    end
  end
  queue.close(q)
  return n
end
