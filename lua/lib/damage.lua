-- What strangers left where our data belong. A function can't take back what it has written, so it must not fail half
-- way: a key of the wrong type counts as one that is not there. Whoever would write to it sets it aside first, to
-- <root>:damaged:<kind>, one of each kind; how many there were stands in <root>:damaged, for `headrace doctor`.
local TTL_MS = '' .. limits.DAMAGED_TTL_MS

local TYPES = {
  job = 'hash', counts = 'hash', config = 'hash', lanes = 'hash', beats = 'hash', worker = 'hash', stats = 'hash',
  ready = 'list', wake = 'list', woken = 'list', errors = 'list', processing = 'set', cancels = 'set',
  blocked = 'zset', delayed = 'zset', finished = 'zset', dead = 'zset', events = 'stream', output = 'stream',
  payload = 'string', result = 'string', calls = 'string', walk = 'string', fired = 'hash', next = 'hash',
  idempotent = 'string', limits = 'hash', strikes = 'hash', struck = 'hash', gate = 'string', gates = 'zset',
  line = 'zset', lines = 'zset', tally = 'hash',
  ordered = 'zset',
  stage = 'list', write = 'hash', committed = 'list', readers = 'hash',
  schedule = 'hash', ['schedule-history'] = 'list', schedules = 'zset', ['schedules-of'] = 'zset',
  ['schedules-due'] = 'zset', ['schedules-heard'] = 'zset', ['schedule-releases'] = 'hash',
}

local function is_error(reply)
  return type(reply) == 'table' and reply.err ~= nil
end

-- Count what was found, by kind.
function damage.note(root, kind)
  local key = keys.damaged(root)
  if is_error(redis.pcall('HINCRBY', key, kind, '1')) then
    redis.call('UNLINK', key)
    redis.call('HINCRBY', key, kind, '1')
  end
  redis.call('PEXPIRE', key, TTL_MS)
end

-- False in a function that only reads.
local function set_aside(key, root, kind)
  local place = keys.aside(root, kind)
  if is_error(redis.pcall('UNLINK', place)) then
    return false
  end
  redis.call('RENAME', key, place)
  redis.call('PEXPIRE', place, TTL_MS)
  damage.note(root, kind)
  return true
end

-- The key to use in place of this one, after an error: another one that is not there, where it can't be set aside.
local function replacement(key, is_full)
  local root, kind = keys.parts(key)
  local found = root and redis.call('TYPE', key).ok
  if not found or found == 'none' or (found == TYPES[kind] and not is_full) or set_aside(key, root, kind) then
    return key
  end
  return keys.aside(root, 'none')
end

local function repeated(failed, command, key, ...)
  local words = { ... }
  if command == 'LMPOP' or command == 'ZMPOP' then
    for i, word in ipairs(words) do
      words[i] = replacement(word)
    end
  elseif string.find(failed.err, 'WRONGTYPE', 1, true) then
    key = replacement(key)
  elseif command == 'HINCRBY' then -- what is there is no number, or too large
    damage.note(keys.parts(key))
    redis.call('HDEL', key, words[1])
  elseif command == 'XADD' then -- there is no larger id any more
    key = replacement(key, true)
  else
    error(failed)
  end
  return redis.call(command, key, unpack(words))
end

-- redis.call, for all that must not fail: 900 instructions more.
function damage.call(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == 'table' and reply.err then
    return repeated(reply, command, key, ...)
  end
  return reply
end
