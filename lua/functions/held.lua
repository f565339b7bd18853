-- What an incarnation has claimed. Reply: id, epoch, nonce a job. Reads only.

function functions.held(roots, args)
  local unit = unit.open(roots[1])
  local reply = {}
  for _, id in ipairs(unit.call('SMEMBERS', keys.processing(unit.root, args[1]))) do
    local job = record.load(unit, id)
    if job and job.state == 'active' and record.owner(job) == args[1] then
      local n = #reply
      reply[n + 1], reply[n + 2], reply[n + 3] = id, job.epoch, job.nonce
    end
  end
  return reply
end
