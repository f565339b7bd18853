-- Some schedules by their ids. Reply: the time, nothing, then five words a schedule.
function functions.read_schedules(roots, args)
  local unit, found = schedules.open(roots), {}
  for _, id in ipairs(args) do
    found[#found + 1] = schedules.load(unit, id)
  end
  return schedules.reply(unit, '', found)
end
