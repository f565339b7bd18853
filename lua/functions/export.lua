-- The jobs that have ended in a state, all that is kept of each, from behind a place on, in the order of their ends.
-- None of this very millisecond, in which another one may end that comes before it.
-- Reply: the last place that was looked at, '' for none; 1 where it stopped at a bound, else 0; then each job's words.
local LOOKS, BYTES = limits.EXPORT_LOOKS, limits.BATCH_LIMIT_BYTES

function functions.export(roots, args)
  local state, behind, limit = args[1], args[2], tonumber(args[3])
  local unit = unit.open(roots[1])
  local places = pages.ended(unit, state, behind, LOOKS)
  local reply, n, size = { '', #places == 2 * LOOKS and '1' or '0' }, 0, 0
  for i = 1, #places, 2 do
    local id, at_ms = places[i], places[i + 1]
    if tonumber(at_ms) >= unit.now_ms then
      reply[2] = '0'
      break
    end
    local words = n < limit and reading.words(unit, id, state)
    size = size + (words and reading.size(words) or 0)
    if n == limit or (size > BYTES and n > 0) then
      reply[2] = '1'
      break
    elseif words then
      n = n + 1
      reply[n + 2] = words
    end
    reply[1] = at_ms .. ':' .. id
  end
  return reply
end
