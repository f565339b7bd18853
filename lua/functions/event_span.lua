-- The first and the last entry of events that are kept. Reply: both, or nothing.
function functions.event_span(roots)
  local unit = unit.open(roots[1])
  return { events.first(unit), unit.call('XREVRANGE', keys.events(unit.root), '+', '-', 'COUNT', 1)[1] }
end
