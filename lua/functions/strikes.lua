-- The strikes of a queue. Reply: the version of those with conditions, then five words a strike: id, since when,
-- action, task, and what arguments are to be.
function functions.strikes(roots)
  local unit = unit.open(roots[1])
  local reply = { numbers.text(settings.of(unit).strikes_version) }
  for _, strike in ipairs(strikes.all(unit)) do
    for _, word in ipairs({ strike.id, strike.since_ms, strike.action, strike.task, strike.where }) do
      reply[#reply + 1] = word
    end
  end
  return reply
end
