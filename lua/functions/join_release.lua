-- Say that a release of an app runs. Reply: 1 where no newer one is alive, else 0; 1 where it was not known, else 0;
-- then the digests of those that are alive, in any order.
function functions.join_release(roots, args)
  local app, digest, alive_ms = unpack(args)
  local unit = schedules.open(roots)
  local known = releases.read(unit, app)
  local order, newest, newest_alive = known[digest] and known[digest].order or 0, 0, 0
  local reply = { '', known[digest] and '0' or '1', digest }
  for name, release in pairs(known) do
    newest = math.max(newest, release.order)
    if name ~= digest and releases.is_alive(unit, release, tonumber(alive_ms)) then
      reply[#reply + 1] = name
      newest_alive = math.max(newest_alive, release.order)
    end
  end
  local is_rolled_back_to = newest_alive < order and order < newest
  if order == 0 or is_rolled_back_to then
    order = newest + 1
  end
  releases.note(unit, app, digest, { order = order, seen_ms = unit.now_ms })
  reply[1] = order > newest_alive and '1' or '0'
  return reply
end
