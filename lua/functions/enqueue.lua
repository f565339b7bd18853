-- Store jobs, each with a verdict of its own; atomic because a batch is accepted whole or not at all.
-- Reply: a verdict a job, a blank between two, or STALECALL. A repeated call answers from memory.

local CALLS_TTL_MS = '' .. limits.CALLS_TTL_MS
local SLOTS = { [0] = '0', [1] = '1' } -- two calls of one client may be in flight together

function functions.enqueue(roots, args)
  local client, number = unpack(args)
  local unit = unit.open(roots[1])
  -- Each slot holds the last number that came to it, and its answer.
  local memory = keys.calls(unit.root, client, SLOTS[number % 2])
  local seen = unit.try('GET', memory)
  local answered, answer = string.match(seen and not seen.err and seen or '', '^(%d+) (.*)$')
  if answered == number then
    return answer
  elseif answered and number + 0 < answered + 0 then
    return redis.error_reply('STALECALL call ' .. number .. ' is older than ' .. answered)
  end
  answer = batch.store(unit, args, 3)
  unit.raw('SET', memory, number .. ' ' .. answer, 'PX', CALLS_TTL_MS)
  local close = unit.gates and lines.close or unit.close -- who met no gate pays nothing for them
  close(unit)
  return answer
end
