-- One page of jobs in a state, without payloads. Reply: the next cursor ('' at the end), WIDTH strings a job.
flags.list_jobs = { 'no-writes' }

local FIELDS = {
  'state', 'task', 'tier', 'attempts', 'stalls', 'epoch', 'created', 'at', 'run', 'claim', 'reason', 'error', 'gen',
}

-- The lists of a queue's ready entries, best tier first. Lanes beside the default one are configured.
local function ready_lists(q)
  local lists = {}
  for tier = 9, 0, -1 do
    lists[#lists + 1] = q.root .. ':ready:' .. job.DEFAULT_LANE .. ':' .. tier
  end
  return lists
end

-- Entries from `offset` on across all ready lists, as if they were one.
local function ready(q, offset, limit)
  local found = {}
  for _, list in ipairs(ready_lists(q)) do
    local length = q.call('LLEN', list)
    if offset < length and #found < limit then
      for _, entry in ipairs(q.call('LRANGE', list, offset, offset + limit - #found - 1)) do
        local colon = string.find(entry, ':', 1, true)
        found[#found + 1] = { id = string.sub(entry, colon + 1), gen = string.sub(entry, 1, colon - 1) }
      end
    end
    offset = math.max(0, offset - length)
  end
  return found
end

local function active(q, offset, limit)
  local found, seen = {}, 0
  for _, incarnation in ipairs(q.call('HKEYS', q.root .. ':beats')) do
    for _, id in ipairs(q.call('SMEMBERS', q.root .. ':processing:' .. incarnation)) do
      seen = seen + 1
      if seen > offset and #found < limit then
        found[#found + 1] = { id = id }
      end
    end
  end
  return found
end

local function sorted(q, command, name, offset, limit)
  local found = {}
  local pairs_of = q.call(command, q.root .. name, offset, offset + limit - 1, 'WITHSCORES')
  for i = 1, #pairs_of, 2 do
    found[#found + 1] = { id = pairs_of[i], due = pairs_of[i + 1] }
  end
  return found
end

local function candidates(q, state, offset, limit)
  if state == 'queued' then
    return ready(q, offset, limit)
  elseif state == 'active' then
    return active(q, offset, limit)
  elseif state == 'failed' then
    return sorted(q, 'ZREVRANGE', ':dead', offset, limit)
  elseif state == 'scheduled' or state == 'retrying' then
    return sorted(q, 'ZRANGE', ':delayed', offset, limit)
  end
  return sorted(q, 'ZREVRANGE', ':finished', offset, limit)
end

function functions.list_jobs(keys, args)
  local state, offset, limit = args[1], tonumber(args[2]), tonumber(args[3])
  local q = queue.open(keys[1])
  local found = candidates(q, state, offset, limit)
  local reply = { #found == limit and queue.text(offset + limit) or '' }
  for _, row in ipairs(found) do
    local v = q.call('HMGET', job.key(q, row.id), unpack(FIELDS))
    if v[1] == state and (not row.gen or row.gen == v[13]) then
      reply[#reply + 1] = row.id
      reply[#reply + 1] = row.due or ''
      for i = 1, #FIELDS - 1 do
        reply[#reply + 1] = v[i] or ''
      end
    end
  end
  return reply
end
