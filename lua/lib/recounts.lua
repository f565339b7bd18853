-- The recount of gates, the last stage of a repair: how many places the jobs that are there have in each. Few jobs are
-- counted in one call. Of more each call tallies some while jobs move; at the end a gate is brought back to its tally
-- if nobody has taken a place in it or left one since the recount began.
local LOOKS, REST_MS = limits.RECOUNT_LOOKS, '' .. limits.RECOUNT_REST_MS
local PHASES = { 'active', 'ready', 'ordered', 'lines', 'write' }
local IS_BEFORE = { active = 1, ready = 2, ordered = 3, lines = 4, write = 5 }

-- A place is when the recount began, a phase, where in its source it goes on, and that: an incarnation or line. The
-- tally has the place of the one call that goes on with it, so that none that is repeated counts anything twice.
local PLACE = '^(%d+)/(%l+)/([^/]*)/(.*)$'

local function place_of(start, phase, at, name)
  return start .. '/' .. phase .. '/' .. at .. '/' .. name
end

-- Where jobs with places are, and what has a line.
local sources = {}

function sources.active(unit)
  local names = unit.call('HKEYS', keys.beats(unit.root))
  table.sort(names)
  return names
end

function sources.ready(unit, work)
  local lines_of_lanes = {}
  for _, lane in ipairs(walk.lanes(unit, work.lanes)) do
    for tier = 0, 9 do
      lines_of_lanes[#lines_of_lanes + 1] = lane .. ':' .. tier
    end
  end
  table.sort(lines_of_lanes)
  return lines_of_lanes
end
sources.ordered = sources.ready

function sources.lines()
  return { '' }
end

-- Up to about n entries of a source, and where it goes on, nil at its end. Whoever stays where it is comes once at
-- least, and only where that is said more than once.
local read = {}

function read.active(unit, name, at, n)
  local key = keys.processing(unit.root, name)
  if not at and unit.call('SCARD', key) <= n then
    return unit.call('SMEMBERS', key), nil, false
  end
  local found = unit.call('SSCAN', key, at or '0', 'COUNT', n)
  return found[2], found[1] ~= '0' and found[1] or nil, true
end

-- Nothing comes to its tail in a queue with limits.
function read.ready(unit, name, at, n)
  local offset = tonumber(at or 0)
  local found = unit.call('LRANGE', keys.ready(unit.root, name), -offset - n, -offset - 1)
  return found, #found == n and numbers.text(offset + n) or nil
end

function read.ordered(unit, name, at, n)
  local key, most = keys.ordered(unit.root, name), at and '(' .. at or '+inf'
  local found, ids = unit.call('ZREVRANGEBYSCORE', key, most, '-inf', 'WITHSCORES', 'LIMIT', '0', n), {}
  for i = 1, #found, 2 do
    ids[#ids + 1] = found[i]
  end
  return ids, #ids == n and found[#found] or nil
end

function read.lines(unit, _, at, n)
  local offset = tonumber(at or 0)
  local found = unit.call('ZRANGE', keys.lines(unit.root), offset, offset + n - 1)
  local next_at = #found == n and numbers.text(offset + n) or nil
  for _, strike in ipairs(at and {} or strikes.all(unit)) do
    found[#found + 1] = strike.id
  end
  return found, next_at
end

local function note(found, name, state)
  local n = found[name] or { queued = 0, active = 0 }
  found[name] = n
  if state then
    n[state] = n[state] + 1
  end
end

-- Count the places of the job that an entry stands for.
local function count(unit, found, phase, name, entry, may_be_known)
  local id, owner, generation = entry, name, nil
  if phase ~= 'active' then
    generation, id = string.match(entry, '^(%d+):(.*)$')
  end
  local job = id and record.load(unit, id)
  local state = generation and 'queued' or 'active'
  if not (job and job.gates and job.state == state) then
    return
  elseif generation and job.generation ~= generation or not generation and record.owner(job) ~= owner then
    return
  elseif may_be_known and unit.call('HSETNX', keys.tally(unit.root), '\n' .. id, '') == 0 then
    return
  end
  for gate in string.gmatch(job.gates, '[^\n]+') do
    note(found, gate, state)
  end
end

-- Look at what comes from a place on. Return what was found by gate, and where to go on: a phase, where in its source,
-- and that; no phase at the end.
local function look(unit, work, phase, at, name)
  local found, first = {}, IS_BEFORE[phase]
  for number = first, IS_BEFORE.lines do
    local its_phase = PHASES[number]
    for _, source in ipairs(sources[its_phase](unit, work)) do
      local is_here = number == first and source == name
      local its_at = is_here and at ~= '' and at or nil
      local is_over = number == first and source < name
      while not is_over do
        if work.looked >= LOOKS then
          return found, its_phase, its_at or '', source
        end
        local found_entries, may_be_known
        found_entries, its_at, may_be_known = read[its_phase](unit, source, its_at, LOOKS - work.looked)
        work.looked, is_over = work.looked + #found_entries, not its_at
        for _, entry in ipairs(found_entries) do
          if its_phase == 'lines' then
            note(found, entry)
          else
            count(unit, found, its_phase, source, entry, may_be_known)
          end
        end
      end
    end
  end
  return found
end

-- Add what one call has found to the tally, with which the next goes on at a place.
local function add(unit, found, next_place)
  local tally = keys.tally(unit.root)
  unit.call('HSET', tally, '', next_place)
  for name, n in pairs(found) do
    unit.call('HINCRBY', tally, 'queued\n' .. name, numbers.text(n.queued))
    unit.call('HINCRBY', tally, 'active\n' .. name, numbers.text(n.active))
  end
  unit.call('PEXPIRE', tally, REST_MS)
end

local function bring_back(unit, work, found, may_trust)
  for name, n in pairs(found) do
    local was_wrong = gates.recount(unit, name, n.queued, n.active, may_trust)
    work.mended = work.mended + (was_wrong and 1 or 0)
  end
end

-- Whether a call goes on at a place, which no other does from now on.
local function take_up(unit, place, start)
  local tally = keys.tally(unit.root)
  if unit.call('HGET', tally, '') ~= place then
    return false -- the tally was lost, or another call has gone on
  end
  unit.call('HSET', tally, '', '')
  return unit.now_ms >= tonumber(start) -- or the clock was set back: no time tells what has changed since
end

-- Bring some gates back to their tallies; return where in these to go on, nil at the end.
local function write(unit, work, start, at)
  local tally, is_still = keys.tally(unit.root), work.seen == walk.fingerprint(unit, {})
  repeat
    local found = {}
    local page = unit.call('HSCAN', tally, at, 'COUNT', 50)
    for i = 1, #page[2], 2 do
      local name = string.match(page[2][i], '^queued\n(.*)$')
      if name then
        local words = { 'queued\n' .. name, 'active\n' .. name }
        local n = unit.call('HMGET', tally, unpack(words))
        found[name] = { queued = tonumber(n[1]) or 0, active = tonumber(n[2]) or 0 }
        unit.call('HDEL', tally, unpack(words))
      end
      work.looked = work.looked + 1
    end
    bring_back(unit, work, found, function(gate)
      return is_still or (gate.value and tonumber(gate.placed_ms) < tonumber(start))
    end)
    at = page[1]
  until at == '0' or work.looked >= LOOKS
  return at ~= '0' and at or nil
end

local function always() return true end

-- Whether one call may look at all: by counts, which the stages before have put right.
local function is_small(unit)
  local v = unit.call('HMGET', keys.counts(unit.root), 'queued', 'active')
  local n = (tonumber(v[1]) or 0) + (tonumber(v[2]) or 0)
  return n + unit.call('ZCARD', keys.lines(unit.root)) <= LOOKS
end

-- A long recount begins where a line may wait for a place that nobody has, and rests for ten minutes after, or until a
-- short one.
local function may_begin(unit, work)
  local tally = keys.tally(unit.root)
  if not (settings.of(unit).has_gates and (work.is_full or is_small(unit) or unit.call('EXISTS', tally) == 0)) then
    return false
  end
  unit.call('UNLINK', tally) -- what is there is of another recount, which may have been given up half way
  return true
end

-- Go on from a place, '' for the beginning; return the next, nil at the end.
function recounts.go_on(unit, work, place)
  local start, phase, at, name = string.match(place, PLACE)
  if not start then
    work.mended = work.mended + (strikes.mend(unit) and 1 or 0)
    if not may_begin(unit, work) then
      return nil
    end
    start, phase, at, name = unit.now_text, 'active', '', ''
    work.seen = walk.fingerprint(unit, {})
  elseif not take_up(unit, place, start) then
    return nil
  end
  if phase ~= 'write' then
    local found, next_phase, next_at, source = look(unit, work, phase, at, name)
    if not next_phase and place == '' then
      bring_back(unit, work, found, always)
      return nil
    end
    local next_place = place_of(start, next_phase or 'write', next_at or '0', source or '')
    add(unit, found, next_place)
    return next_place
  end
  local next_at = write(unit, work, start, at)
  local next_place = next_at and place_of(start, 'write', next_at, '')
  unit.call('HSET', keys.tally(unit.root), '', next_place or '')
  return next_place
end
