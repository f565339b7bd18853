-- Commit stages of a write: the point from which on all their jobs will be there. Atomic because it is all or none.
-- Arguments: the write's id, batch, keep_ms, then token, length and jobs of each stage. Reply: committed, known where
-- this batch or a later one is, or STAGELOST.
local FIRST, WIDTH = 4, 3

-- Return the names of the stages and how many jobs they have, or the error that one of them is.
local function look(unit, write, write_id, args)
  local names, seen, jobs = {}, {}, 0
  for at = FIRST, #args, WIDTH do
    local token, length = args[at], tonumber(args[at + 1])
    local name = staged.name(token, write_id)
    local there = staged.length(unit, name)
    if there == 0 then
      return nil, nil, staged.lost(token, write_id, 'is not there')
    elseif there ~= length then
      return nil, nil, staged.lost(token, write_id, 'has length ' .. there .. ', not ' .. args[at + 1])
    elseif seen[name] then
      return nil, nil, staged.lost(token, write_id, 'is named twice')
    elseif write and staged.is_committed(unit, name) then
      return nil, nil, staged.lost(token, write_id, 'is committed')
    end
    seen[name], names[#names + 1], jobs = true, name, jobs + args[at + 2]
  end
  return names, jobs
end

function functions.commit(roots, args)
  local write_id, batch, keep_ms = unpack(args, 1, FIRST - 1)
  local unit = unit.open(roots[1])
  local write = staged.load_write(unit, write_id)
  if write and write.batch >= batch + 0 then
    return 'known'
  end
  -- Without a record nothing is committed: what looks so was left by a call that failed half way.
  local names, jobs, lost = look(unit, write, write_id, args)
  if lost then
    return lost
  end
  staged.commit(unit, write_id, write, batch, keep_ms, names, jobs)
  return 'committed'
end
