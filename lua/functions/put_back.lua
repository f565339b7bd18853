-- Return claimed jobs to the head, in the order given, free of charge. Other claims are passed over.
-- Reply: how many were returned or ended as asked.
function functions.put_back(roots, args)
  local q = queue.open(roots[1])
  local n = 0
  for at = #args - 2, 1, -3 do
    local record = job.load_waiting(q, args[at])
    if record and record.state == 'active' and record.epoch == args[at + 1] and record.claim == args[at + 2] then
      worker.send_back(q, record, q.heads)
      n = n + 1
    end
  end
  queue.close(q)
  return n
end
