-- Have some jobs of a queue not be run until that is lifted. Arguments: an id, an action, a task or '', and what
-- arguments are to be or ''. Reply: ok. Errors: TOOSTRIKES.
function functions.strike(roots, args)
  local unit = unit.open(roots[1])
  local id, action, task, where = unpack(args)
  if not strikes.set(unit, id, action, task, where) then
    return redis.error_reply('TOOSTRIKES the queue has ' .. limits.STRIKES_LIMIT .. ' strikes')
  end
  entries.begin_numbers(unit)
  return 'ok'
end
