-- Who has places in gates: a gate itself only counts them, so that they are looked for among the jobs that run or are
-- ready, as far as the bound goes.
local LOOKS, MOST = limits.HOLDERS_LOOKS, limits.HOLDERS_LIMIT

-- Note a job with the gates of `found` that it has places in; return how many notes that were.
local function note(unit, found, id)
  local v = unit.call('HMGET', keys.job(unit.root, id), 'head', 'gates')
  local state, notes = v[2] and record.parts(v[1]), 0
  for name in string.gmatch((state == 'active' or state == 'queued') and v[2] or '', '[^\n]+') do
    local ids = found[name]
    -- What is active has no place in a window.
    if ids and #ids < MOST and (state == 'queued' or not turns.terms(name)) then
      ids[#ids + 1], notes = id, notes + 1
    end
  end
  return notes
end

-- Look at some of the jobs that run, until as many are found as are missing.
local function look_at_active(unit, found, missing)
  local looks = LOOKS
  for _, incarnation in ipairs(unit.call('HKEYS', keys.beats(unit.root))) do
    local ids = missing > 0 and looks > 0 and unit.call('SMEMBERS', keys.processing(unit.root, incarnation)) or {}
    table.sort(ids)
    for at = 1, math.min(looks, #ids) do
      missing = missing > 0 and missing - note(unit, found, ids[at]) or 0
    end
    looks = looks - #ids
  end
end

local function look_at_ready(unit, found, missing)
  for _, row in ipairs(missing > 0 and pages.entries(unit, 'queued', '', LOOKS) or {}) do
    if missing > 0 then
      missing = missing - note(unit, found, row.id)
    end
  end
end

-- The ids of jobs that have a place in each of some gates, by their names: those that run first.
function holders.of(unit, its_gates)
  local found, active, all = {}, 0, 0
  for _, gate in ipairs(its_gates) do
    found[gate.name] = {}
    active, all = active + math.min(MOST, gate.active), all + math.min(MOST, gate.active + gate.ready)
  end
  look_at_active(unit, found, active)
  for _, ids in pairs(found) do
    all = all - #ids
  end
  look_at_ready(unit, found, all)
  return found
end
