-- The readers of the events. Reply: how many events there were; name, entry, event and time a reader.
function functions.readers(roots)
  local unit = unit.open(roots[1])
  local reply = readers.all(unit)
  table.insert(reply, 1, numbers.text(readers.told(unit)))
  return reply
end
