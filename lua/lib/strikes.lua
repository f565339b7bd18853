-- Strikes: which jobs of a queue are not to be run until one is lifted, by task or by arguments. What is struck by its
-- task alone is met by claims. What arguments are to be is read by workers, to which claims tell the version.

-- A strike's value, a tab between two: since when it stands, its action, its task, and what arguments are to be.
local VALUE, STRUCK = '^(%d+)\t(%l+)\t([^\t]*)\t(.*)$', '^(%l+)\t(.*)$'
local CLOSED = { is_closed = true, concurrency = 0, rate = 0, rate_ms = 0, burst = 0 }

-- By bytes: how strings compare depends on the server's locale.
local function is_less(one, other)
  for at = 1, math.min(#one, #other) do
    local its, others = string.byte(one, at), string.byte(other, at)
    if its ~= others then
      return its < others
    end
  end
  return #one < #other
end

-- All strikes of a queue, those that were set first before the others.
function strikes.all(unit)
  local flat, found = unit.call('HGETALL', keys.strikes(unit.root)), {}
  for i = 1, #flat, 2 do
    local since_ms, action, task, where = string.match(flat[i + 1], VALUE)
    if since_ms then
      found[#found + 1] = {
        id = flat[i], set_ms = tonumber(since_ms), since_ms = since_ms, action = action, task = task, where = where,
      }
    end
  end
  table.sort(found, function(one, other)
    return one.set_ms < other.set_ms or (one.set_ms == other.set_ms and is_less(one.id, other.id))
  end)
  return found
end

-- Add the words of a strike to a reply: id, since when, action, task, and what arguments are to be.
function strikes.append(reply, strike)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = strike.id, strike.since_ms, strike.action
  reply[n + 4], reply[n + 5] = strike.task, strike.where
end

-- What claims look at, by the strikes that there are: of each task the one that they meet, whether there is any of
-- these, and whether any has conditions.
local function derive(unit)
  local met, conditions = {}, '0'
  for _, strike in ipairs(strikes.all(unit)) do
    if strike.where ~= '' then
      conditions = '1'
    elseif not met[strike.task] then
      met[strike.task] = strike.action .. '\t' .. strike.id
    end
  end
  return met, next(met) and '1' or '0', conditions
end

local function note(unit, changes_conditions)
  local key = keys.struck(unit.root)
  local met, is_struck, conditions = derive(unit)
  unit.call('UNLINK', key)
  for task, said in pairs(met) do
    unit.call('HSET', key, task, said)
  end
  if changes_conditions then
    unit.call('HINCRBY', keys.config(unit.root), 'strikes_version', '1')
  end
  settings.set(unit, 'is_struck', is_struck, 'has_conditions', conditions)
end

-- Bring what claims look at back to the strikes that there are; return whether it was wrong.
function strikes.mend(unit)
  local flat, n = unit.call('HGETALL', keys.struck(unit.root)), 0
  local flags = unit.call('HMGET', keys.config(unit.root), 'is_struck', 'has_conditions')
  local met, is_struck, conditions = derive(unit)
  local is_wrong = (flags[1] or '0') ~= is_struck or (flags[2] or '0') ~= conditions
  for i = 1, #flat, 2 do
    n, is_wrong = n + 1, is_wrong or met[flat[i]] ~= flat[i + 1]
  end
  for _ in pairs(met) do
    n = n - 1
  end
  if is_wrong or n ~= 0 then
    note(unit, true)
    return true
  end
  return false
end

local function has_conditions(value)
  local _, _, _, where = string.match(value or '', VALUE)
  return where ~= nil and where ~= ''
end

-- Set a strike; return false where there are as many as there may be.
function strikes.set(unit, id, action, task, where)
  local key = keys.strikes(unit.root)
  local before = unit.call('HGET', key, id)
  if not before and unit.call('HLEN', key) >= limits.STRIKES_LIMIT then
    return false
  end
  local value = table.concat({ unit.now_text, action, task, where }, '\t')
  unit.call('HSET', key, id, value)
  note(unit, where ~= '' or has_conditions(before))
  return true
end

-- Lift one; return whether it was there.
function strikes.lift(unit, id)
  local key = keys.strikes(unit.root)
  local before = unit.call('HGET', key, id)
  if before then
    unit.call('HDEL', key, id)
    note(unit, has_conditions(before))
  end
  return before ~= false
end

-- The strike by which jobs of a task are not to be taken, its action and id; false without one.
function strikes.of_task(unit, task)
  local known = unit.struck
  if not known then
    known = {}
    unit.struck = known
  end
  if known[task] == nil then
    local action, id = string.match(unit.call('HGET', keys.struck(unit.root), task) or '', STRUCK)
    known[task] = action and { action = action, id = id } or false
  end
  return known[task]
end

-- Whether a line is a strike's: that of a gate has a tab in its name.
function strikes.has_line(name)
  return name ~= '' and not string.find(name, '\t', 1, true)
end

-- Whether a strike stands.
function strikes.stands(unit, id)
  return unit.call('HEXISTS', keys.strikes(unit.root), id) == 1
end

-- What a strike allows those in its line: nothing while it stands.
function strikes.terms(unit, id)
  return strikes.stands(unit, id) and CLOSED
end
