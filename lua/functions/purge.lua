-- Delete jobs that are in one state and tell who waits for them. Reply: how many were.

function functions.purge(roots, args)
  local unit = unit.open(roots[1])
  local state = args[1]
  local n = 0
  for i = 2, #args do
    local job = record.load(unit, args[i])
    if job and job.state == state and state ~= 'active' then
      finish.delete(unit, job)
      n = n + 1
    end
  end
  lines.close(unit)
  return n
end
