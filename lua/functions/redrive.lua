-- Queue dead letters again, counts and error history reset. Reply: how many were.

function functions.redrive(roots, args)
  local unit = unit.open(roots[1])
  local n = 0
  for _, id in ipairs(args) do
    local job = record.load_waiting(unit, id)
    if job and job.state == 'failed' then
      unit.call('UNLINK', keys.errors(unit.root, id))
      unit.call(
        'HDEL', job.key, 'failures', 'stalls', 'expires_at_ms', 'put_back', 'reason', 'error', 'cancel',
        'channels', 'joined'
      )
      job.run_ms = ''
      unit.call('PERSIST', job.key)
      unit.call('PERSIST', keys.payload(unit.root, id))
      if job.big ~= '' then
        -- It was cut to what the dead letter had; how much of its own is gone is not known any more.
        unit.call('PEXPIRE', keys.output(unit.root, id), record.OUTPUT_TTL_MS)
      end
      moves.move(unit, job, 'ready', 'queued', '', 'redriven', 'tails')
      n = n + 1
    end
  end
  lines.close(unit)
  return n
end
