-- Make changes of schedules, each only where nobody has changed it since it was read; atomic because a batch may not
-- grow beyond the limit. Reply: a word each, a blank between two: the new version, 0 where it is deleted, - where it
-- is not what was expected. Or TOOMANY.
-- Arguments: 1 to wake schedulers, then for each id, expected version, n, and n words: app, due_ms, the version of one
-- that is made, body, and entries of the history, oldest first; n is 0 to delete it.
function functions.write_schedules(roots, args)
  return schedules.write(schedules.open(roots), args)
end
