-- The repair's walk: what is derived from records is brought back to what is there, a bounded piece a call. A stage is
-- given where it goes on, and returns where it stopped, nil at its end.
local BATCH = limits.BATCH_LIMIT

-- A count is set by a call that has seen all that it counts, or by the last of several between which nothing moved.
local function set_count(unit, work, name, n)
  local key = keys.counts(unit.root)
  local is_lane = string.sub(name, 1, 7) == 'queued:'
  if tonumber(unit.call('HGET', key, name) or 0) == n then
    return
  end
  work.mended = work.mended + 1
  if n == 0 and is_lane then
    unit.call('HDEL', key, name)
  else
    unit.call('HSET', key, name, numbers.text(n))
  end
end

-- How many jobs are delayed: what stands for gates is none.
local function count_delayed(unit)
  local key = keys.delayed(unit.root)
  return unit.call('ZCARD', key) - (unit.call('ZSCORE', key, record.GATES) and 1 or 0)
end

-- What changes with every move of a job; of those that must wait only the end of their line does.
function walk.fingerprint(unit, lists)
  local names = { 'events', 'queued', 'elsewhere', 'scheduled', 'retrying', 'active' }
  local words = {}
  for i, word in ipairs(unit.call('HMGET', keys.counts(unit.root), unpack(names))) do
    words[i] = word or ''
  end
  for _, list in ipairs(lists) do
    words[#words + 1] = entries.from_tail(unit, list, 0, 1)[1] or ''
  end
  return redis.sha1hex(table.concat(words, '\n'))
end

local stages = {}

-- The members of the processing sets, from one incarnation's scan on.
function stages.active(unit, work, from)
  local names = unit.call('HKEYS', keys.beats(unit.root))
  table.sort(names)
  local first, scan = string.match(from, '^([^/]*)/(%d+)$')
  for _, name in ipairs(names) do
    local key, at = keys.processing(unit.root, name), name == first and scan or '0'
    while not first or name >= first do
      if work.looked >= BATCH then
        return name .. '/' .. at
      end
      local found = unit.call('SSCAN', key, at, 'COUNT', BATCH)
      at = found[1]
      for _, id in ipairs(found[2]) do
        local job = record.load(unit, id)
        work.looked = work.looked + 1
        if not (job and job.state == 'active' and record.owner(job) == name) then
          unit.call('SREM', key, id)
          unit.call('SREM', keys.cancels(unit.root, name), id)
          record.erase_lost(unit, id)
          work.mended = work.mended + 1
        end
      end
      if at == '0' then
        break
      end
    end
  end
  -- All that are left stand for active jobs, those that came meanwhile too.
  local n = 0
  for _, name in ipairs(names) do
    n = n + unit.call('SCARD', keys.processing(unit.root, name))
  end
  set_count(unit, work, 'active', n)
  return nil
end

function stages.delayed(unit, work, from)
  local key, offset = keys.delayed(unit.root), tonumber(from) or 0
  if not work.seen then
    work.seen, work.tally = walk.fingerprint(unit, {}), {}
  end
  while work.looked < BATCH do
    local members = unit.call('ZRANGE', key, offset, offset + BATCH - work.looked - 1)
    for _, member in ipairs(members) do
      local job = record.of_member(unit, member)
      work.looked = work.looked + 1
      if member == record.GATES then
        offset = offset + 1
      elseif job then
        offset = offset + 1
        work.tally[job.state] = (work.tally[job.state] or 0) + 1
      else
        unit.call('ZREM', key, member)
        record.erase_lost(unit, record.id_of(member) or '')
        work.mended = work.mended + 1
      end
    end
    if #members == 0 then
      break
    end
  end
  if offset < unit.call('ZCARD', key) then
    return numbers.text(offset)
  end
  local n = count_delayed(unit)
  local retrying = math.min(n, tonumber(unit.call('HGET', keys.counts(unit.root), 'retrying') or 0))
  if work.seen == walk.fingerprint(unit, {}) then
    retrying = work.tally.retrying or 0
  end
  set_count(unit, work, 'retrying', math.max(0, retrying))
  set_count(unit, work, 'scheduled', n - math.max(0, retrying))
  return nil
end

-- The lanes in which anything may stand: those that are named, have jobs, or are any task's.
function walk.lanes(unit, named)
  local is_lane, lanes = {}, {}
  for _, names in ipairs({ named, counts.lanes(unit), unit.call('HVALS', keys.lanes(unit.root)) }) do
    for _, lane in ipairs(names) do
      if not is_lane[lane] then
        is_lane[lane] = true
        lanes[#lanes + 1] = lane
      end
    end
  end
  table.sort(lanes)
  return lanes
end

-- The keys of the lines of lanes, as many of each.
local LINES = 20

local function lists_of(unit, lanes)
  local lists = {}
  for _, lane in ipairs(lanes) do
    for tier = 0, 9 do
      lists[#lists + 1] = keys.ready(unit.root, lane .. ':' .. tier)
      lists[#lists + 1] = keys.ordered(unit.root, lane .. ':' .. tier)
    end
  end
  return lists
end

-- While jobs move, a count is only held against the lengths of its lines, which are too long by what is left over.
local function count_ready(unit, work, lanes, lists)
  local is_exact = work.seen == walk.fingerprint(unit, lists)
  local elsewhere, here = 0, 0
  for i, lane in ipairs(lanes) do
    local n = is_exact and work.tally[lane] or 0
    if not is_exact then
      local most = 0
      for at = i * LINES - LINES + 1, i * LINES do
        most = most + entries.size(unit, lists[at])
      end
      n = math.max(0, math.min(most, counts.ready(unit, lane)))
    end
    if lane == record.DEFAULT_LANE then
      here = n
    else
      elsewhere = elsewhere + n
      set_count(unit, work, 'queued:' .. lane, n)
    end
  end
  set_count(unit, work, 'elsewhere', elsewhere)
  set_count(unit, work, 'queued', here + elsewhere)
end

-- The ready entries, each line from its tail: what is claimed or put back at the head moves none that is to come.
function stages.ready(unit, work, from)
  local lanes = walk.lanes(unit, work.lanes)
  local lists = lists_of(unit, lanes)
  if not work.seen then
    work.seen, work.tally = walk.fingerprint(unit, lists), {}
  end
  local at, offset = string.match(from, '^(%d+)/(%d+)$')
  at, offset = tonumber(at or 1), tonumber(offset or 0)
  while at <= #lists do
    if work.looked >= BATCH then
      return at .. '/' .. numbers.text(offset)
    end
    local lane = lanes[math.ceil(at / LINES)]
    local size = BATCH - work.looked
    local found = entries.from_tail(unit, lists[at], offset, size)
    for _, entry in ipairs(found) do
      local entry_generation, id = string.match(entry, '^(%d+):(.*)$')
      local head = id and unit.call('HGET', keys.job(unit.root, id), 'head')
      local state, _, _, generation = record.parts(head)
      work.looked = work.looked + 1
      if state == 'queued' and generation == entry_generation then
        work.tally[lane] = (work.tally[lane] or 0) + 1
      elseif id and not head and record.erase_lost(unit, id) > 0 then
        work.mended = work.mended + 1
      end
    end
    offset = offset + #found
    if #found < size then
      at, offset = at + 1, 0
    end
  end
  count_ready(unit, work, lanes, lists)
  return nil
end

-- Those that are blocked: one whose active job or place in line was lost goes on. Each counts twice, for its record and
-- its place.
function stages.blocked(unit, work, from)
  local key, offset = keys.blocked(unit.root), tonumber(from) or 0
  local size = math.floor((BATCH - work.looked) / 2)
  if size < 1 then
    return numbers.text(offset)
  end
  local ids = unit.call('ZRANGE', key, offset, offset + size - 1)
  for _, id in ipairs(ids) do
    local is_blocked, was_wrong = lines.mend(unit, id)
    if is_blocked == nil then
      is_blocked, was_wrong = successors.mend(unit, id)
    end
    offset = offset + (is_blocked and 1 or 0)
    work.looked, work.mended = work.looked + 2, work.mended + (was_wrong and 1 or 0)
  end
  lines.close(unit) -- what came in is counted before
  local n = unit.call('ZCARD', key)
  if offset < n then
    return numbers.text(offset)
  end
  set_count(unit, work, 'blocked', n)
  return nil
end

-- Whether a list or set has as many places as its count says. Lost records leave both as they are until their places
-- come up and stand for nothing, and then the count is too high.
local sizes = {}

function sizes.delayed(unit)
  local v = unit.call('HMGET', keys.counts(unit.root), 'scheduled', 'retrying')
  return count_delayed(unit) == (tonumber(v[1]) or 0) + (tonumber(v[2]) or 0)
end

function sizes.ready(unit, work)
  local all = 0
  for _, lane in ipairs(walk.lanes(unit, work.lanes)) do
    local n = 0
    for _, list in ipairs(lists_of(unit, { lane })) do
      n = n + entries.size(unit, list)
    end
    if n ~= counts.ready(unit, lane) then
      return false
    end
    all = all + n
  end
  return all == (tonumber(unit.call('HGET', keys.counts(unit.root), 'queued')) or 0)
end

-- Whether a stage has nothing to do as far as sizes tell.
function walk.has_its_size(unit, name, work)
  return sizes[name] ~= nil and sizes[name](unit, work)
end

function walk.go_on(unit, work, place, name)
  return stages[name](unit, work, place)
end
