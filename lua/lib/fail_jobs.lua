-- What a dead letter brings: a job of the task that was named for that, in the same step. A fail job has none of its
-- own, since the field `on_failed` of its record names no task: ''.
local DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
local NAME_LIMIT, DRAWN = 256, 16

-- A word that can be the name of a task, else nil.
local function task_name(word)
  return word and #word <= NAME_LIMIT and string.match(word, '^[^%c]+$')
end

-- The task that was named for a job, if any: a job's own says more than the queue's.
local function task_of(unit, job)
  local own = job.more ~= '' and unit.call('HGET', job.key, 'on_failed')
  return task_name(own or settings.of(unit).on_failed)
end

local function quoted(word)
  return '"' .. string.gsub(word, '[\\"]', '\\%0') .. '"'
end

-- The options of a fail job, by which its worker knows what failed. The error is the client's JSON, as it is.
local function options_of(job, reason, error)
  return '{"failed":{"id":' .. quoted(job.id) .. ',"task":' .. quoted(job.task) .. ',"reason":' .. quoted(reason)
    .. ',"failures":' .. numbers.text(job.failures) .. ',"stalls":' .. numbers.text(job.stalls)
    .. ',"starts":' .. job.epoch .. ',"error":' .. (error ~= '' and error or 'null') .. '}}'
end

-- An id as clients draw them: ten digits of the time, and sixteen that no other has.
local function new_id(unit, id)
  local at_ms, time = unit.now_ms, ''
  for _ = 1, 10 do
    local digit = at_ms % 32
    time = string.sub(DIGITS, digit + 1, digit + 1) .. time
    at_ms = (at_ms - digit) / 32
  end
  local n, found = 0, ''
  while found == '' or unit.call('EXISTS', keys.job(unit.root, found)) == 1 do
    n = n + 1
    local drawn = redis.sha1hex(unit.generation .. ':' .. n .. ':' .. id)
    found = time .. string.upper(string.sub(drawn, 1, DRAWN))
  end
  return found
end

-- What is to come of a job that is about to fail, nil where nothing is. It is asked for before the record may be gone.
function fail_jobs.of(unit, job, reason, error)
  local task = task_of(unit, job)
  if not task then
    return nil
  end
  local v = unit.call('HMGET', job.key, 'payload', 'tier')
  return {
    failed = job.id, task = task, options = options_of(job, reason, error),
    payload = v[1] or unit.call('GET', keys.payload(unit.root, job.id)) or '',
    tier = record.tier(v[2]),
  }
end

-- Store it, ready at once.
function fail_jobs.enter(unit, coming)
  local id = new_id(unit, coming.failed)
  local few = { 'options', coming.options, 'on_failed', '' }
  local job, fields = intake.new(
    unit, keys.job(unit.root, id), id, coming.task, coming.payload, '', coming.tier, few
  )
  job.tail = events.tail('0', '', '', '', 'on_failed ' .. coming.failed)
  moves.enter(unit, job, 'ready', 'queued', 'tails', unpack(fields))
  stats.tally(unit, 'enqueued')
end
