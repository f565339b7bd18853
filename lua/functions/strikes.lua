-- The strikes of a queue. Reply: the version of those with conditions, then the words of each strike.
function functions.strikes(roots)
  local unit = unit.open(roots[1])
  local reply = { numbers.text(settings.of(unit).strikes_version) }
  for _, strike in ipairs(strikes.all(unit)) do
    strikes.append(reply, strike)
  end
  return reply
end
