-- The places of jobs in a state, a page at a time, from behind the last entry of the page before, which is looked for
-- anew: others may have come and gone.
local REACH = 50000 -- most ready entries that are compared to find one again: 1 ms

-- Where a ready line goes on behind the entry that was at `index`.
local function behind_entry(unit, line, index, entry)
  local list = keys.ready(unit.root, line)
  local rank = settings.of(unit).has_gates and unit.call('ZRANK', keys.ordered(unit.root, line), entry)
  if rank then
    return unit.call('LLEN', list) + rank + 1
  elseif unit.call('LINDEX', list, index) == entry then
    return index + 1
  end
  local at = unit.call('LPOS', list, entry, 'MAXLEN', REACH)
  if at then
    return at + 1
  end
  -- It was claimed, and all before it too; from one too deep to tell, the place in line is all that is known.
  return index < REACH and 0 or index + 1
end

-- By bytes, as Redis orders equal scores; Lua's own order is that of the server's language.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

local function is_lane_before(a, b)
  if a == record.DEFAULT_LANE or b == record.DEFAULT_LANE then
    return a ~= b and a == record.DEFAULT_LANE
  end
  return is_before(a, b)
end

-- Add the entries of one ready line, from one index on.
local function add_entries(unit, found, limit, place, from)
  for i, entry in ipairs(entries.of(unit, place, from, limit - #found)) do
    local gen, id = string.match(entry, '^(%d*):(.*)$')
    found[#found + 1] = { id = id or entry, gen = gen or '' }
    found.cursor = place .. ':' .. numbers.text(from + i - 1) .. ':' .. entry
  end
end

-- The default lane first, the others by name; in each the best tier first. A cursor is lane:tier:index:entry.
local function ready(unit, cursor, limit)
  local found, lanes = {}, counts.lanes(unit)
  local last_lane, last_tier, index, entry = string.match(cursor, '^([^:]+):(%d):(%d+):(.*)$')
  table.sort(lanes, is_lane_before)
  for _, lane in ipairs(lanes) do
    local is_last = lane == last_lane
    if not (last_lane and is_lane_before(lane, last_lane)) then
      for tier = is_last and tonumber(last_tier) or 9, 0, -1 do
        local place, from = lane .. ':' .. tier, 0
        if is_last and tier == tonumber(last_tier) then
          from = behind_entry(unit, place, tonumber(index), entry)
        end
        add_entries(unit, found, limit, place, from)
        if #found == limit then
          return found
        end
      end
    end
  end
  return found
end

local function active(unit, cursor, limit)
  local found = {}
  local first, last = string.match(cursor, '^([^/]*)/(.*)$')
  local incarnations = unit.call('HKEYS', keys.beats(unit.root))
  table.sort(incarnations)
  for _, incarnation in ipairs(incarnations) do
    local ids = {}
    if not first or incarnation >= first then
      ids = unit.call('SMEMBERS', keys.processing(unit.root, incarnation))
      table.sort(ids)
    end
    for _, id in ipairs(ids) do
      if #found < limit and (incarnation ~= first or id > last) then
        found[#found + 1] = { id = id }
        found.cursor = incarnation .. '/' .. id
      end
    end
  end
  return found
end

-- Where a sorted set goes on behind a member with this score, whether or not that is still there.
local function behind_member(unit, command, key, score, last)
  local is_falling = command == 'ZREVRANGE'
  local low
  if is_falling then
    low = unit.call('ZCOUNT', key, '(' .. score, '+inf')
  else
    low = unit.call('ZCOUNT', key, '-inf', '(' .. score)
  end
  local high = low + unit.call('ZCOUNT', key, score, score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = unit.call(command, key, middle, middle)[1]
    if member ~= last and is_before(member, last) == is_falling then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

-- The members of a sorted set behind a cursor, each with its score.
local function members(unit, command, key, cursor, limit)
  local from = 0
  local score, last = string.match(cursor, '^([^:]+):(.*)$')
  if score then
    from = behind_member(unit, command, key, score, last)
  end
  return unit.call(command, key, from, from + limit - 1, 'WITHSCORES')
end

local function sorted(unit, command, key, cursor, limit)
  local found, pairs_of = {}, members(unit, command, key, cursor, limit)
  for i = 1, #pairs_of, 2 do
    local member, score_of_it = pairs_of[i], pairs_of[i + 1]
    local its_id = key == keys.delayed(unit.root) and record.id_of(member) or member
    found[#found + 1] = { id = its_id, due_ms = score_of_it, member = member } -- that of gates is no job's
    found.cursor = score_of_it .. ':' .. member
  end
  return found
end

-- Return the ids of jobs that ended in a state, and of those that are kept among them, in the order of their ends, each
-- with the time of that.
function pages.ended(unit, state, cursor, limit)
  local key = state == 'failed' and keys.dead(unit.root) or keys.finished(unit.root)
  return members(unit, 'ZRANGE', key, cursor, limit)
end

-- Return the entries of one page of a state, where each was found, and the cursor behind the last.
function pages.entries(unit, state, cursor, limit)
  if state == 'queued' then
    return ready(unit, cursor, limit)
  elseif state == 'active' then
    return active(unit, cursor, limit)
  elseif state == 'failed' then
    return sorted(unit, 'ZREVRANGE', keys.dead(unit.root), cursor, limit)
  elseif state == 'blocked' then
    return sorted(unit, 'ZRANGE', keys.blocked(unit.root), cursor, limit)
  elseif state == 'scheduled' or state == 'retrying' then
    return sorted(unit, 'ZRANGE', keys.delayed(unit.root), cursor, limit)
  end
  return sorted(unit, 'ZREVRANGE', keys.finished(unit.root), cursor, limit)
end
