-- The last entry of events up to an id. Reply: the entry, nil for none.
function functions.event_place(roots, args)
  local entry = events.last_up_to(unit.open(roots[1]), args[1])
  return entry
end
