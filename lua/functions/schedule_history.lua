-- The entries of a schedule's history. Reply: an entry each, the newest first.
function functions.schedule_history(roots, args)
  local unit = schedules.open(roots)
  return unit.call('LRANGE', keys.schedule_history(unit.root, args[1]), '0', limits.SCHEDULE_HISTORY - 1)
end
