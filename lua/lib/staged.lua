-- Staged writes. A stage holds the words of jobs that are none yet, an entry a call, packed by who sent them: the
-- server then carries one word and not a thousand. It has a TTL until it is committed; then it is on the queue's list
-- of committed ones. The record of a write says what was committed, and how much of that is published.
local LIMIT, LAST = '' .. limits.STAGES_LIMIT, '' .. limits.STAGES_LIMIT - 1
local DEFAULT_KEEP_MS = '' .. limits.DEFAULT_WRITE_KEEP_MS

-- The name of a stage in its queue. A token has no colon.
function staged.name(token, write_id)
  return token .. ':' .. write_id
end

-- The write that a stage is of.
local function write_of(name)
  return string.match(name, ':(.*)$') or ''
end

-- The reply to a call that needs a stage as it isn't.
function staged.lost(token, write_id, why)
  return redis.error_reply('STAGELOST stage ' .. token .. ' of write ' .. write_id .. ' ' .. why)
end

function staged.length(unit, name)
  return unit.call('LLEN', keys.stage(unit.root, name))
end

-- One that is on the list. It has no TTL; nor may one have whose call failed half way.
function staged.is_committed(unit, name)
  return unit.call('PTTL', keys.stage(unit.root, name)) == -1
    and unit.call('LPOS', keys.committed(unit.root), name) ~= false
end

function staged.append(unit, name, packed)
  unit.call('RPUSH', keys.stage(unit.root, name), packed)
end

-- Return what is known of a write; nil where nothing is.
function staged.load_write(unit, id)
  local v = unit.call('HMGET', keys.write(unit.root, id), 'batch', 'stages_left', 'jobs', 'added')
  if numbers.digits(v[1]) then
    return {
      batch = tonumber(v[1]), left = numbers.read(v[2], 0), jobs = numbers.read(v[3], 0), added = numbers.read(v[4], 0),
    }
  end
end

-- Commit stages that were looked at. The record comes last: without it the call is made again.
function staged.commit(unit, id, write, batch, keep_ms, names, jobs)
  local key = keys.write(unit.root, id)
  for _, name in ipairs(names) do
    unit.call('PERSIST', keys.stage(unit.root, name))
  end
  if #names > 0 then
    unit.call('RPUSH', keys.committed(unit.root), unpack(names))
  end
  write = write or { left = 0, jobs = 0, added = 0 }
  local left, added = #names + write.left, numbers.text(write.added)
  jobs = numbers.text(jobs + write.jobs)
  unit.call(
    'HSET', key, 'batch', batch, 'stages_left', numbers.text(left), 'jobs', jobs, 'added', added, 'keep_ms', keep_ms,
    'finished', ''
  )
  if left > 0 then
    unit.call('PERSIST', key)
  else
    unit.call('PEXPIRE', key, keep_ms)
  end
end

-- Return the words of the first call that is left of a stage: none where they can't be read, nil where nothing is left.
function staged.next_words(unit, name)
  local packed = unit.call('LINDEX', keys.stage(unit.root, name), '0')
  if not packed then
    return nil
  end
  local is_read, words = pcall(cmsgpack.unpack, packed)
  if is_read and type(words) == 'table' then
    return words
  end
  damage.note(unit.root, 'stage')
  return {}
end

-- Take those off their stage: `added` of their jobs are stored. Return whether anything is left of it.
function staged.trim(unit, name, added)
  local key = keys.stage(unit.root, name)
  if added > 0 then
    unit.call('HINCRBY', keys.write(unit.root, write_of(name)), 'added', numbers.text(added))
  end
  unit.call('LTRIM', key, '1', '-1')
  return unit.call('EXISTS', key) == 1
end

-- Strike the first stage off the list: nothing is left of it. Its write says that it is finished, so that a call that
-- failed half way counts it once.
function staged.finish(unit, name)
  local key = keys.write(unit.root, write_of(name))
  local v = unit.call('HMGET', key, 'stages_left', 'finished', 'keep_ms')
  local left = numbers.read(v[1], 0)
  if v[2] ~= name then
    left = math.max(0, left - 1)
    unit.call('HSET', key, 'stages_left', numbers.text(left), 'finished', name)
  end
  if left == 0 then
    unit.call('PEXPIRE', key, numbers.digits(v[3]) or DEFAULT_KEEP_MS)
  end
  unit.call('LPOP', keys.committed(unit.root))
end

-- Drop what is committed and not published, with the records of these writes, as far as a call may. Return how many
-- stages are left.
function staged.erase(unit)
  local key = keys.committed(unit.root)
  for _, name in ipairs(unit.call('LRANGE', key, '0', LAST)) do
    unit.call('UNLINK', keys.stage(unit.root, name), keys.write(unit.root, write_of(name)))
  end
  unit.call('LTRIM', key, LIMIT, '-1')
  return unit.call('LLEN', key)
end
