-- Who has places in gates: a gate itself only counts them, so that they are looked for among the jobs that run or are
-- ready, as far as the bound goes. Of most jobs one field is read, so that a look takes 1.5 us.
local LOOKS, MOST = limits.HOLDERS_LOOKS, limits.HOLDERS_LIMIT
local NOTHING = {}

-- A search among the jobs that are active or ready: how many are to be found for each gate, and in all.
local function search_of(its_gates, found, count)
  local search = { missing = 0, looks = LOOKS }
  for at, gate in ipairs(its_gates) do
    local ids = found[gate.name]
    local wanted = math.min(MOST - #ids, gate[count])
    search[at] = { name = gate.name, wanted = wanted, ids = ids }
    search.missing = search.missing + wanted
  end
  return search
end

-- Whether there is anything left to look for, and a look.
local function goes_on(search)
  search.looks = search.looks - 1
  return search.missing > 0 and search.looks > 0
end

-- Whether a gate is one of those that a record names, a line each. Most are not even a part of that.
local function is_named(names, name)
  return string.find(names, name, 1, true) and string.find('\n' .. names .. '\n', '\n' .. name .. '\n', 1, true)
end

-- Look at one job. An entry of a line, if that is where it was found, may be left over.
local function look(unit, search, id, entry)
  local names = unit.call('HGET', keys.job(unit.root, id), 'gates')
  for _, gate in ipairs(names and search or NOTHING) do
    if gate.wanted > 0 and is_named(names, gate.name) and (not entry or entries.stands(unit, entry)) then
      gate.ids[#gate.ids + 1] = id
      gate.wanted, search.missing = gate.wanted - 1, search.missing - 1
    end
  end
end

-- Some jobs of an incarnation: about n, where there are so many.
local function some_of(unit, incarnation, n)
  return unit.call('SSCAN', keys.processing(unit.root, incarnation), '0', 'COUNT', n)[2]
end

-- To ask for the jobs of an incarnation is a look, too.
local function look_at_active(unit, search, incarnations)
  for _, incarnation in ipairs(incarnations) do
    if not goes_on(search) then
      return
    end
    for _, id in ipairs(some_of(unit, incarnation, search.looks)) do
      if goes_on(search) then
        look(unit, search, id)
      end
    end
  end
end

-- The line of a job, then others of the lanes that have ready jobs, as many as there may be looks.
local function lines_from(unit, job)
  local its_own, lanes = job.lane .. ':' .. job.tier, counts.lanes(unit)
  local found = { its_own }
  for at = 1, math.min(#lanes, LOOKS / 10) do
    for tier = 9, 0, -1 do
      local line = lanes[at] .. ':' .. tier
      found[#found + 1] = line ~= its_own and line or nil
    end
  end
  return found
end

local function look_at_ready(unit, search, job)
  for _, line in ipairs(search.missing > 0 and lines_from(unit, job) or NOTHING) do
    if not goes_on(search) then
      return
    end
    for _, entry in ipairs(entries.of(unit, line, 0, search.looks)) do
      local id = string.match(entry, '^%d+:(.*)$')
      if goes_on(search) and id then
        look(unit, search, id, entry)
      end
    end
  end
end

-- The ids of jobs that have a place in each of a job's gates, by their names: those that run first.
function holders.of(unit, job, its_gates, incarnations)
  local found = {}
  for _, gate in ipairs(its_gates) do
    found[gate.name] = {}
  end
  look_at_active(unit, search_of(its_gates, found, 'active'), incarnations)
  look_at_ready(unit, search_of(its_gates, found, 'ready'), job)
  return found
end
