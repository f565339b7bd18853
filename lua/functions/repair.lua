-- Bring what is derived from records back to what is there, where records were lost behind our back: the processing
-- sets, the delayed set, what lies beside a record, and the counts. A bounded piece a call; a queue in order is not
-- changed. Reply: the next cursor, '' at the end, and how many things were put right.
local BATCH = limits.BATCH_LIMIT

-- A count is set by a call that has seen all that it counts, or by the last of several between which nothing moved.
local function set_count(q, work, name, n)
  local key = keys.counts(q.root)
  local is_lane = string.sub(name, 1, 7) == 'queued:'
  if tonumber(q.call('HGET', key, name) or 0) == n then
    return
  end
  work.mended = work.mended + 1
  if n == 0 and is_lane then
    q.call('HDEL', key, name)
  else
    q.call('HSET', key, name, queue.text(n))
  end
end

-- What changes with every move of a job; of those that must wait only the end of their list does.
local function fingerprint(q, lists)
  local names = { 'events', 'queued', 'elsewhere', 'scheduled', 'retrying', 'active' }
  local words = {}
  for i, word in ipairs(q.call('HMGET', keys.counts(q.root), unpack(names))) do
    words[i] = word or ''
  end
  for _, list in ipairs(lists) do
    words[#words + 1] = q.call('LINDEX', list, '-1') or ''
  end
  return redis.sha1hex(table.concat(words, '\n'))
end

local stages = {}

-- The members of the processing sets, from one incarnation's scan on.
function stages.active(q, work, from)
  local names = q.call('HKEYS', keys.beats(q.root))
  table.sort(names)
  local first, scan = string.match(from, '^([^/]*)/(%d+)$')
  for _, name in ipairs(names) do
    local key, at = keys.processing(q.root, name), name == first and scan or '0'
    while not first or name >= first do
      if work.looked >= BATCH then
        return name .. '/' .. at
      end
      local found = q.call('SSCAN', key, at, 'COUNT', BATCH)
      at = found[1]
      for _, id in ipairs(found[2]) do
        local record = job.load(q, id)
        work.looked = work.looked + 1
        if not (record and record.state == 'active' and job.owner(record) == name) then
          q.call('SREM', key, id)
          q.call('SREM', keys.cancels(q.root, name), id)
          job.erase_lost(q, id)
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
    n = n + q.call('SCARD', keys.processing(q.root, name))
  end
  set_count(q, work, 'active', n)
  return nil
end

function stages.delayed(q, work, from)
  local key, offset = keys.delayed(q.root), tonumber(from) or 0
  if not work.seen then
    work.seen, work.tally = fingerprint(q, {}), {}
  end
  while work.looked < BATCH do
    local members = q.call('ZRANGE', key, offset, offset + BATCH - work.looked - 1)
    for _, member in ipairs(members) do
      local record = job.of_member(q, member)
      work.looked = work.looked + 1
      if record then
        offset = offset + 1
        work.tally[record.state] = (work.tally[record.state] or 0) + 1
      else
        q.call('ZREM', key, member)
        job.erase_lost(q, job.id_of(member) or '')
        work.mended = work.mended + 1
      end
    end
    if #members == 0 then
      break
    end
  end
  if offset < q.call('ZCARD', key) then
    return queue.text(offset)
  end
  local n = q.call('ZCARD', key)
  local retrying = math.min(n, tonumber(q.call('HGET', keys.counts(q.root), 'retrying') or 0))
  if work.seen == fingerprint(q, {}) then
    retrying = work.tally.retrying or 0
  end
  set_count(q, work, 'retrying', math.max(0, retrying))
  set_count(q, work, 'scheduled', n - math.max(0, retrying))
  return nil
end

local function lanes_of(q, named)
  local is_lane, lanes = {}, {}
  for _, names in ipairs({ named, queue.lanes(q), q.call('HVALS', keys.lanes(q.root)) }) do
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

local function lists_of(q, lanes)
  local lists = {}
  for _, lane in ipairs(lanes) do
    for tier = 0, 9 do
      lists[#lists + 1] = keys.ready(q.root, lane .. ':' .. tier)
    end
  end
  return lists
end

-- While jobs move, a count is only held against the lengths of its lists, which are too long by what is left over.
local function count_ready(q, work, lanes, lists)
  local is_exact = work.seen == fingerprint(q, lists)
  local elsewhere, here = 0, 0
  for i, lane in ipairs(lanes) do
    local n = is_exact and work.tally[lane] or 0
    if not is_exact then
      local most = 0
      for at = i * 10 - 9, i * 10 do
        most = most + q.call('LLEN', lists[at])
      end
      n = math.max(0, math.min(most, queue.ready(q, lane)))
    end
    if lane == job.DEFAULT_LANE then
      here = n
    else
      elsewhere = elsewhere + n
      set_count(q, work, 'queued:' .. lane, n)
    end
  end
  set_count(q, work, 'elsewhere', elsewhere)
  set_count(q, work, 'queued', here + elsewhere)
end

-- The ready entries, each list from its tail: what is claimed or put back at the head moves none that is to come.
function stages.ready(q, work, from)
  local lanes = lanes_of(q, work.lanes)
  local lists = lists_of(q, lanes)
  if not work.seen then
    work.seen, work.tally = fingerprint(q, lists), {}
  end
  local at, offset = string.match(from, '^(%d+)/(%d+)$')
  at, offset = tonumber(at or 1), tonumber(offset or 0)
  while at <= #lists do
    if work.looked >= BATCH then
      return at .. '/' .. queue.text(offset)
    end
    local lane = lanes[math.ceil(at / 10)]
    local size = BATCH - work.looked
    local entries = q.call('LRANGE', lists[at], -offset - size, -offset - 1)
    for _, entry in ipairs(entries) do
      local entry_generation, id = string.match(entry, '^(%d+):(.*)$')
      local head = id and q.call('HGET', keys.job(q.root, id), 'head')
      local state, _, _, generation = job.parts(head)
      work.looked = work.looked + 1
      if state == 'queued' and generation == entry_generation then
        work.tally[lane] = (work.tally[lane] or 0) + 1
      elseif id and not head and job.erase_lost(q, id) > 0 then
        work.mended = work.mended + 1
      end
    end
    offset = offset + #entries
    if #entries < size then
      at, offset = at + 1, 0
    end
  end
  count_ready(q, work, lanes, lists)
  return nil
end

-- Whether a list or set has as many places as its count says. Lost records leave both as they are until their places
-- come up and stand for nothing, and then the count is too high.
local sizes = {}

function sizes.delayed(q)
  local v = q.call('HMGET', keys.counts(q.root), 'scheduled', 'retrying')
  return q.call('ZCARD', keys.delayed(q.root)) == (tonumber(v[1]) or 0) + (tonumber(v[2]) or 0)
end

function sizes.ready(q, work)
  local all = 0
  for _, lane in ipairs(lanes_of(q, work.lanes)) do
    local n = 0
    for _, list in ipairs(lists_of(q, { lane })) do
      n = n + q.call('LLEN', list)
    end
    if n ~= queue.ready(q, lane) then
      return false
    end
    all = all + n
  end
  return all == (tonumber(q.call('HGET', keys.counts(q.root), 'queued')) or 0)
end

local ORDER = { 'active', 'delayed', 'ready' }
local REST_MS, WALK_MS = '5000', '30000'

-- One walk of a queue at a time, however many sweep it, and a rest between two.
local function may_begin(q)
  local key = keys.walk(q.root)
  return q.call('SET', key, '1', 'NX', 'PX', REST_MS) or q.call('PTTL', key) == -1
end

local function tally_text(tally)
  local words = {}
  for name, n in pairs(tally or {}) do
    words[#words + 1] = name .. '=' .. queue.text(n)
  end
  return table.concat(words, ' ')
end

-- A cursor is stage, f where sizes alone do not do, place, fingerprint and tally, a tab between two.
function functions.repair(roots, args)
  local q = queue.open(roots[1])
  local stage, full, place, seen, tally = string.match(args[1], '^(%d)\t(f?)\t([^\t]*)\t(%x*)\t(.*)$')
  if not stage and not may_begin(q) then
    return { '', '0' }
  end
  local work = { looked = 0, mended = 0, lanes = { unpack(args, 2) }, seen = seen ~= '' and seen, tally = {} }
  for name, n in string.gmatch(tally or '', '(%S+)=(%d+)') do
    work.tally[name] = tonumber(n)
  end
  for number = tonumber(stage or 1), #ORDER do
    local name = ORDER[number]
    local is_begun, has_size = (place or '') ~= '', sizes[name]
    if is_begun or full == 'f' or not has_size or not has_size(q, work) then
      local next_place = stages[name](q, work, place or '')
      if next_place then
        queue.close(q)
        q.call('SET', keys.walk(q.root), '1', 'PX', WALK_MS)
        local words = { number, full or '', next_place, work.seen or '', tally_text(work.tally) }
        return { table.concat(words, '\t'), queue.text(work.mended) }
      end
    end
    place, work.seen, work.tally = '', nil, {}
  end
  queue.close(q)
  q.call('SET', keys.walk(q.root), '1', 'PX', REST_MS)
  return { '', queue.text(work.mended) }
end
