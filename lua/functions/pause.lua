-- Stop claims of a queue. Reply: ok.
function functions.pause(roots)
  local unit = unit.open(roots[1])
  settings.set(unit, 'paused', '1')
  return 'ok'
end
