-- What an incarnation has claimed. Reply: id, epoch, nonce a job. Reads only.
flags.held = { 'no-writes' }

function functions.held(roots, args)
  local q = queue.open(roots[1])
  local reply = {}
  for _, id in ipairs(q.call('SMEMBERS', keys.processing(q.root, args[1]))) do
    local record = job.load(q, id)
    if record and record.state == 'active' and job.owner(record) == args[1] then
      local n = #reply
      reply[n + 1], reply[n + 2], reply[n + 3] = id, record.epoch, record.claim
    end
  end
  return reply
end
