-- Delete jobs that are in one state and tell who waits for them. Reply: how many were.
local INDEXES = { failed = ':dead', completed = ':finished', cancelled = ':finished' }

function functions.purge(keys, args)
  local q = queue.open(keys[1])
  local state = args[1]
  local n = 0
  for i = 2, #args do
    local record = job.load(q, args[i])
    if record and record.state == state and state ~= 'active' then
      if INDEXES[state] then
        q.call('ZREM', q.root .. INDEXES[state], args[i])
      end
      finish.delete(q, record)
      n = n + 1
    end
  end
  queue.close(q)
  return n
end
