-- Say that a process of a release has ended. Reply: ok.
function functions.leave_release(roots, args)
  local app, digest = unpack(args)
  local unit = schedules.open(roots)
  local release = releases.read(unit, app)[digest]
  if release then
    releases.note(unit, app, digest, { order = release.order, seen_ms = release.seen_ms, has_left = true })
  end
  return 'ok'
end
