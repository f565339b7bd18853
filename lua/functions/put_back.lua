-- Return claimed jobs to the head, in the order given, free of charge. Other claims are passed over.
-- Reply: how many were returned or ended as asked.
function functions.put_back(roots, args)
  local unit = unit.open(roots[1])
  local n = 0
  for at = #args - 2, 1, -3 do
    local job = record.load_waiting(unit, args[at])
    if job and job.state == 'active' and job.epoch == args[at + 1] and job.nonce == args[at + 2] then
      attempts.put_back(unit, job)
      n = n + 1
    end
  end
  lines.close(unit)
  return n
end
