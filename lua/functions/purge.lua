-- Delete jobs that are in one state and tell who waits for them. Reply: how many were.
local INDEXES = { failed = keys.dead, completed = keys.finished, cancelled = keys.finished }

function functions.purge(roots, args)
  local q = queue.open(roots[1])
  local state = args[1]
  local n = 0
  for i = 2, #args do
    local record = job.load(q, args[i])
    if record and record.state == state and state ~= 'active' then
      if INDEXES[state] then
        q.call('ZREM', INDEXES[state](q.root), args[i])
      end
      finish.delete(q, record)
      n = n + 1
    end
  end
  queue.close(q)
  return n
end
