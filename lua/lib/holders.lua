-- Who has places in gates: a gate itself only counts them, so that they are looked for among the jobs that run or are
-- ready, as far as the bound goes.
local LOOKS, MOST = limits.HOLDERS_LOOKS, limits.HOLDERS_LIMIT

-- Note a job with the gates of `found` that it has places in.
local function note(unit, found, id)
  local v = unit.call('HMGET', keys.job(unit.root, id), 'head', 'gates')
  local state = v[2] and record.parts(v[1])
  if state ~= 'active' and state ~= 'queued' then
    return
  end
  for name in string.gmatch(v[2], '[^\n]+') do
    local ids = found[name]
    if ids and #ids < MOST then
      ids[#ids + 1] = id
    end
  end
end

local function look_at_active(unit, found)
  local looks = LOOKS
  for _, incarnation in ipairs(unit.call('HKEYS', keys.beats(unit.root))) do
    if looks <= 0 then
      return
    end
    local ids = unit.call('SMEMBERS', keys.processing(unit.root, incarnation))
    table.sort(ids)
    for at = 1, math.min(looks, #ids) do
      note(unit, found, ids[at])
    end
    looks = looks - #ids
  end
end

local function look_at_ready(unit, found)
  for _, row in ipairs(pages.entries(unit, 'queued', '', LOOKS)) do
    note(unit, found, row.id)
  end
end

-- The ids of jobs that have a place in each of some gates, by their names: those that run first.
function holders.of(unit, its_gates)
  local found, has_active, has_ready = {}, false, false
  for _, gate in ipairs(its_gates) do
    found[gate.name] = {}
    has_active, has_ready = has_active or gate.active > 0, has_ready or gate.ready > 0
  end
  if has_active then
    look_at_active(unit, found)
  end
  if has_ready then
    look_at_ready(unit, found)
  end
  return found
end
