-- Take ended records out of the indexes once they are gone or too old, and drop readers that are silent: a bounded
-- piece a call.
-- Reply: the next cursor, '' at the end.

-- The cursor is an offset in the history, or after a `d` one in the dead letters.
function functions.prune(roots, args)
  local unit = unit.open(roots[1])
  local index, offset = string.match(args[1], '^(d?)(%d+)$')
  readers.prune(unit)
  local has_more = history.prune_old(unit)
  local next_offset = tonumber(offset)
  if index == '' then
    next_offset = history.prune_places(unit, 'completed', next_offset)
    if next_offset then
      unit:close()
      return numbers.text(next_offset)
    end
    next_offset = 0
  end
  next_offset = history.prune_places(unit, 'failed', next_offset)
  unit:close()
  if next_offset or has_more then
    return 'd' .. numbers.text(next_offset or 0)
  end
  return ''
end
