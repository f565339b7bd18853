-- The releases of an app that have run: a hash, from a release's digest to its place in their order, when it has joined
-- last, and whether a process of it has left since.
local TTL_MS, LEFT_MS = limits.RELEASES_TTL_MS, limits.RELEASE_LEFT_MS

local function read_one(word)
  local order, seen_ms, left = string.match(word, '^(%d+) (%d+)( ?%l*)$')
  if numbers.digits(order) and numbers.digits(seen_ms) then
    return { order = tonumber(order), seen_ms = tonumber(seen_ms), has_left = left == ' left' }
  end
end

-- Those that are remembered, by their digests; what is old or can't be read is taken out.
function releases.read(unit, app)
  local key, known = keys.schedule_releases(unit.root, app), {}
  local flat = unit.call('HGETALL', key)
  for i = 1, #flat, 2 do
    local release = read_one(flat[i + 1])
    if release and release.seen_ms + TTL_MS > unit.now_ms then
      known[flat[i]] = release
    else
      unit.call('HDEL', key, flat[i])
    end
  end
  return known
end

-- Whether a release is alive that counts as such for a while after it has joined. One of which a process has left has
-- less time: the others join again.
function releases.is_alive(unit, release, alive_ms)
  local span_ms = release.has_left and math.min(alive_ms, LEFT_MS) or alive_ms
  return release.seen_ms + span_ms >= unit.now_ms
end

function releases.note(unit, app, digest, release)
  local key = keys.schedule_releases(unit.root, app)
  local left = release.has_left and ' left' or ''
  local word = numbers.text(release.order) .. ' ' .. numbers.text(release.seen_ms) .. left
  unit.call('HSET', key, digest, word)
  unit.call('PEXPIRE', key, numbers.text(TTL_MS))
end
