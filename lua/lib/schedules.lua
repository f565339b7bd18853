-- The schedules of a tenant: their records, where they are found, and who is told when one is due sooner. The unit's
-- root is the tenant's.
local HEARD_MS, CHANNELS = limits.SCHEDULES_HEARD_MS, '' .. limits.CHANNELS_LIMIT
local LISTENERS_TTL_MS = 60 * HEARD_MS -- of all together, once nobody looks any more
local LAST_ENTRY, ROOM = '' .. limits.SCHEDULE_HISTORY - 1, limits.BATCH_LIMIT_BYTES
local MENDED = '' .. limits.BATCH_LIMIT
local FIRST_WORDS = 3 -- of a write: id, the version that it expects, and how many words follow

-- Open the unit of a call whose key is that of all schedules: a user may have no right to the root, which is no key.
function schedules.open(roots)
  return unit.open((keys.parts(roots[1])))
end

-- nil where there is none, or what is there is no schedule.
function schedules.load(unit, id)
  local v = unit.call('HMGET', keys.schedule(unit.root, id), 'app', 'version', 'due_ms', 'body')
  if v[1] and numbers.digits(v[2]) and numbers.digits(v[3]) and v[4] then
    return { id = id, app = v[1], version = v[2], due_ms = v[3], body = v[4] }
  end
end

-- Load the first of these, `limit` at most, until there is no room for one more; the first has it in any case. The
-- page says how many ids it looked at, and which of them are no schedules.
function schedules.load_page(unit, ids, limit)
  local page, bytes = { looked = 0, missing = {} }, 0
  for n = 1, math.min(limit, #ids) do
    local schedule = schedules.load(unit, ids[n])
    bytes = bytes + (schedule and #schedule.body or 0)
    if bytes > ROOM and #page > 0 then
      break
    end
    local list = schedule and page or page.missing
    list[#list + 1] = schedule or ids[n]
    page.looked = n
  end
  return page
end

-- A reply: the time, a word, then five words a schedule.
function schedules.reply(unit, word, page)
  local reply = { unit.now_text, word }
  for _, schedule in ipairs(page) do
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = schedule.id, schedule.app, schedule.version
    reply[n + 4], reply[n + 5] = schedule.due_ms, schedule.body
  end
  return reply
end

-- When a scheduler is to look at the first of them, as a number; nil where there is none.
function schedules.first_ms(unit)
  return tonumber(unit.call('ZRANGE', keys.schedules_due(unit.root), '0', '0', 'WITHSCORES')[2])
end

-- Have a schedule looked at from then on, and not before.
function schedules.look_at(unit, id, at_ms)
  unit.call('ZADD', keys.schedules_due(unit.root), at_ms, id)
end

-- Note a channel that wants to know when the first due instant comes forward.
function schedules.hear(unit, channel)
  local key, since_ms = keys.schedules_heard(unit.root), numbers.text(unit.now_ms - HEARD_MS)
  unit.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. since_ms)
  unit.call('ZADD', key, unit.now_text, channel)
  unit.call('PEXPIRE', key, numbers.text(LISTENERS_TTL_MS))
end

-- Tell those that want to know: the word is the end of no job, of no queue.
local function notify(unit)
  local key, since_ms = keys.schedules_heard(unit.root), numbers.text(unit.now_ms - HEARD_MS)
  local channels =
    unit.call('ZRANGE', key, '+inf', since_ms, 'BYSCORE', 'REV', 'LIMIT', '0', CHANNELS)
  local message = table.concat({ unit.root, '', '', '', '', '' }, '\n')
  for _, channel in ipairs(channels) do
    wake.publish(unit, channel, message)
  end
end

-- Erase a schedule, and what is left of one whose record was lost.
function schedules.erase(unit, id, app)
  local root = unit.root
  unit.call('UNLINK', keys.schedule(root, id), keys.schedule_history(root, id))
  unit.call('ZREM', keys.schedules(root), id)
  unit.call('ZREM', keys.schedules_due(root), id)
  if app and app ~= '' then
    unit.call('ZREM', keys.schedules_of(root, app), id)
  end
end

-- Give schedules a place among the due ones whose place was lost, a bounded piece a call: chance decides which, so that
-- in the end all are found.
function schedules.mend(unit)
  local all, due = keys.schedules(unit.root), keys.schedules_due(unit.root)
  if unit.call('ZCARD', due) >= unit.call('ZCARD', all) then
    return
  end
  for _, id in ipairs(unit.call('ZRANDMEMBER', all, MENDED)) do
    local schedule = schedules.load(unit, id)
    if schedule then
      unit.call('ZADD', due, 'NX', schedule.due_ms, id)
    else
      schedules.erase(unit, id)
    end
  end
end

-- Note a place, to be written at the end with all others of its index.
local function note(places, key, score, id)
  local words = places[key] or {}
  words[#words + 1], words[#words + 2] = score, id
  places[key] = words
end

-- Return the new version. Where it is found is noted each time, as it may have been lost.
local function put(unit, places, write, app, due_ms, first_version, body, ...)
  local root, id, old = unit.root, write.id, write.old
  if not old then -- what is left of one whose record was lost is in the way
    unit.call('UNLINK', keys.schedule(root, id), keys.schedule_history(root, id))
  elseif old.app ~= app and old.app ~= '' then
    unit.call('ZREM', keys.schedules_of(root, old.app), id)
  end
  local version = old and numbers.text(old.version + 1) or first_version
  unit.call(
    'HSET', keys.schedule(root, id), 'app', app, 'version', version, 'due_ms', due_ms, 'body', body
  )
  note(places, keys.schedules(root), '0', id)
  note(places, keys.schedules_due(root), due_ms, id)
  if app ~= '' then
    note(places, keys.schedules_of(root, app), '0', id)
  end
  if select('#', ...) > 0 then
    unit.call('LPUSH', keys.schedule_history(root, id), ...)
    unit.call('LTRIM', keys.schedule_history(root, id), '0', LAST_ENTRY)
  end
  return version
end

-- Return the writes, each with what stands there now, and by how many schedules there will be more. A write that is
-- not of what stands there has no version to say.
local function read_writes(unit, args, at)
  local writes, growth = {}, 0
  while at <= #args do
    local first, last = at + FIRST_WORDS, at + FIRST_WORDS + args[at + 2] - 1
    local write = { id = args[at], first = first, last = last, old = schedules.load(unit, args[at]) }
    write.is_current = args[at + 1] == (write.old and write.old.version or '0')
    if write.is_current then
      growth = growth + (last < first and 0 or 1) - (write.old and 1 or 0)
    end
    writes[#writes + 1] = write
    at = last + 1
  end
  return writes, growth
end

local function apply(unit, places, write, args)
  if not write.is_current then
    return '-'
  elseif write.first <= write.last then
    return put(unit, places, write, unpack(args, write.first, write.last))
  elseif write.old then
    schedules.erase(unit, write.id, write.old.app)
  end
  return '0'
end

-- A number up to a million for people to read.
local function shown(number)
  return (string.gsub(numbers.text(number), '(%d)(%d%d%d)$', '%1,%2'))
end

-- Make changes, and return the reply: see `write_schedules`.
function schedules.write(unit, args)
  local writes, growth = read_writes(unit, args, 2)
  if growth > 0 and unit.call('ZCARD', keys.schedules(unit.root)) + growth > limits.SCHEDULES_LIMIT then
    return redis.error_reply('TOOMANY a tenant has at most ' .. shown(limits.SCHEDULES_LIMIT) .. ' schedules')
  end
  local before_ms, versions, places = schedules.first_ms(unit) or math.huge, {}, {}
  for n, write in ipairs(writes) do
    versions[n] = apply(unit, places, write, args)
  end
  for key, words in pairs(places) do
    unit.call('ZADD', key, unpack(words))
  end
  if args[1] == '1' and (schedules.first_ms(unit) or math.huge) < before_ms then
    notify(unit)
  end
  return table.concat(versions, ' ')
end
