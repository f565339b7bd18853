-- What is stored of a job: its record, and the keys beside it.
record.INLINE_LIMIT = 64 -- a longer value would turn the record from a compact listpack to a hash table
record.DEFAULT_LANE = limits.DEFAULT_LANE
record.DEFAULT_TIER = '' .. limits.DEFAULT_PRIORITY
record.GATES = 'gates' -- what stands for gates among the delayed: no job's member
record.OUTPUT_TTL_MS = '' .. limits.OUTPUT_TTL_MS
local DEFAULT_KEEP_MS, DEFAULT_MAX_STALLS = '' .. limits.DEFAULT_KEEP_MS, limits.DEFAULT_MAX_STALLS
local CHANNELS, LAST_ERROR = limits.CHANNELS_LIMIT, '' .. limits.ERRORS_KEPT - 1

local NOTHING = {}
local FEW_FIELDS = { 'failures', 'stalls', 'cancel', 'channels', 'next', 'gates' }
local WAITING_FIELDS = { 'lane', 'tier', 'expires_at_ms', 'max_stalls', 'keep_ms' }

-- Fields to be read in one go with those that few jobs have: to ask twice costs 5,000 instructions more. Nothing global
-- is there while a library is loaded.
function record.with_few(fields)
  local all = {}
  for i = 1, #FEW_FIELDS do
    all[i] = FEW_FIELDS[i]
  end
  for i = 1, #fields do
    all[#FEW_FIELDS + i] = fields[i]
  end
  return all
end

local MORE_OF_WAITING = record.with_few({ 'lane', 'tier', 'expires_at_ms', 'max_stalls', 'keep_ms', 'parked' })
local WHOLE_OF_WAITING = record.with_few({
  'lane', 'tier', 'expires_at_ms', 'max_stalls', 'keep_ms', 'parked', 'head', 'claim', 'task',
})

-- What changes with the state is one field, `head`: a field costs 2,200 instructions to read and 1,700 to write. Its
-- parts, a tab between two: state, generation, the times of the last change and of the creation, run_ms. A new job's
-- last change is empty: it is the creation. Behind the state stand a * where the payload or output has a key of its
-- own, and a + where the record has any field beside those that every way looks at or that are written with an end:
-- head, claim, task, payload, tier, result, reason, error, output, progress, put_back. All this stays below 64 bytes.
local HEAD = '^(%l+)(%*?)(%+?)\t(%d*)\t(%d*)\t(%d+)\t(%d*)$'
local STATES = {
  scheduled = true, blocked = true, queued = true, active = true, retrying = true, completed = true, failed = true,
  cancelled = true,
}

-- Return state, * or '', + or '', generation, at, created, run_ms; nil of what is no head. Jobs that came, were claimed
-- or left a line together have the same: what was read last is kept, for to take a head apart costs 1 us.
local last_head, its_state, its_big, its_more, its_generation, its_at_ms, its_created_ms, its_run_ms
function record.parts(head)
  if not head then
    return nil
  elseif head ~= last_head then
    local state, big, more, generation, at_ms, created_ms, run_ms = string.match(head, HEAD)
    if not (STATES[state] and #at_ms <= 15 and #created_ms <= 15 and #run_ms <= 15) then
      return nil
    end
    last_head, its_state, its_big, its_more, its_generation = head, state, big, more, generation
    its_at_ms, its_created_ms, its_run_ms = at_ms, created_ms, run_ms
  end
  return its_state, its_big, its_more, its_generation, its_at_ms, its_created_ms, its_run_ms
end

-- nil of what is no head.
function record.state(head)
  if head == last_head then
    return its_state
  end
  return (record.parts(head))
end

-- The head of a job that comes or changes now.
function record.head(unit, job, state, generation)
  local at_ms = job.is_new and '' or unit.now_text
  return state .. job.big .. job.more .. '\t' .. generation .. '\t' .. at_ms .. '\t' .. job.created_ms .. '\t'
    .. job.run_ms
end

-- The parts of the field `claim`, which is epoch and nonce, a tab between them. Jobs that were claimed together have
-- the same.
local last_claim, its_epoch, its_nonce = nil, '0', ''
function record.claim_parts(claim)
  if claim ~= last_claim then
    local epoch, nonce = string.match(claim or '', '^(%d+)\t(.*)$')
    last_claim, its_epoch, its_nonce = claim, numbers.digits(epoch) or '0', nonce or ''
  end
  return its_epoch, its_nonce
end

-- The head of a job that has a payload or output in a key of its own. New jobs of one call have the same.
local last_small, last_big
function record.with_big(head)
  if head ~= last_small then
    last_small, last_big = head, string.gsub(head, '^(%l+)%*?', '%1*')
  end
  return last_big
end

-- Have the head say that the record has fields which few have; it is written by the caller, together with them.
function record.with_more(job)
  job.more = '+'
  job.head = job.head and string.gsub(job.head, '^(%l+%*?)%+?', '%1+')
end

-- Write such fields of a job that does not change its state.
function record.add_fields(unit, job, ...)
  record.with_more(job)
  unit.call('HSET', job.key, 'head', job.head, ...)
end

-- nil when there is no record. A job's `gates` are those in which it may have places, and `gates_asked` those that it
-- meets from its next move on.
function record.load(unit, id, fields)
  local key = keys.job(unit.root, id)
  local v = unit.call('HMGET', key, 'head', 'claim', 'task')
  return record.read(unit, id, key, v[1], v[2], v[3], fields)
end

-- The job whose head, claim and task were read, nil when there is none. Of one that may have fields which few have,
-- `fields` are read, if they are said, and its `others` are the values of those behind the few; `known` are their
-- values, if they were read already.
function record.read(unit, id, key, head, claim, task, fields, known)
  local state, big, more, generation, at_ms, created_ms, run_ms = record.parts(head)
  if not state then
    return nil
  end
  local epoch, nonce = record.claim_parts(claim)
  local few = more ~= '' and (known or unit.call('HMGET', key, unpack(fields or FEW_FIELDS))) or NOTHING
  local others = fields and more ~= '' and { unpack(few, #FEW_FIELDS + 1, #fields) } or NOTHING
  return {
    key = key, id = id, head = head, state = state, big = big, more = more, generation = generation, at_ms = at_ms,
    created_ms = created_ms, run_ms = run_ms, epoch = epoch, nonce = nonce, task = task or '',
    failures = numbers.read(few[1], 0), stalls = numbers.read(few[2], 0), cancel = few[3], channels = few[4],
    owner = false, is_sound = task and numbers.is_valid(few[1]) and numbers.is_valid(few[2]),
    has_errors = few[1] or few[2], has_next = few[5], gates = few[6], gates_asked = few[6],
    others = others,
  }
end

-- The type of the error whose words for an event these are.
function record.error_type(words)
  return string.match(words, '^[^\t]*')
end

-- The parts of the field `put_back`, a tab between two: when workers began to put the job back, how many errors of its
-- handler and stalls it had then, the type of the error that they put it back for, and that error. It is void once the
-- job has had another of those, for then some worker has run it.
local PUT_BACK = '^(%d+)\t(%d+)\t([^\t]*)\t(.*)$'

function record.put_back_note(job, first_ms, error, error_type)
  return first_ms .. '\t' .. numbers.text(job.failures + job.stalls) .. '\t' .. error_type .. '\t' .. error
end

-- Return when it was first put back, and the last error's type and body; nil where it was not, or has run since.
function record.put_back(note, charged)
  local first_ms, charged_then, error_type, error = string.match(note or '', PUT_BACK)
  if numbers.digits(first_ms) and numbers.digits(charged_then) == numbers.text(charged) then
    return first_ms, error_type, error
  end
end

-- All fields of a hash by name, nil where it is not there.
function record.fields(unit, key)
  local flat, fields = unit.call('HGETALL', key), {}
  for i = 1, #flat, 2 do
    fields[flat[i]] = flat[i + 1]
  end
  return flat[1] and fields
end

-- The tier that a word says, the default where it says none.
function record.tier(word)
  return string.match(word or '', '^%d$') or record.DEFAULT_TIER
end

local function as_waiting(unit, job)
  if job then
    local v = job.more ~= '' and job.others or unit.call('HMGET', job.key, unpack(WAITING_FIELDS))
    job.parked = v[6] or nil
    job.lane = record.lane_name(v[1]) or record.DEFAULT_LANE
    job.tier = record.tier(v[2])
    job.expires_at_ms = numbers.read(v[3], 0)
    job.max_stalls = numbers.read(v[4], DEFAULT_MAX_STALLS)
    job.keep_ms = numbers.digits(v[5]) or DEFAULT_KEEP_MS
    job.is_sound = job.is_sound and numbers.is_valid(v[3]) and numbers.is_valid(v[4])
  end
  return job
end

-- What a job needs to know to wait again, or to end without a worker.
function record.load_waiting(unit, id)
  return as_waiting(unit, record.load(unit, id, MORE_OF_WAITING))
end

-- The same, in one go, of a job that has fields which few have, as all have that wait in the line of a gate.
function record.load_blocked(unit, id)
  local key = keys.job(unit.root, id)
  local v = unit.call('HMGET', key, unpack(WHOLE_OF_WAITING))
  return as_waiting(unit, record.read(unit, id, key, v[13], v[14], v[15], MORE_OF_WAITING, v))
end

function record.is_terminal(state)
  return state == 'completed' or state == 'failed' or state == 'cancelled'
end

function record.is_delayed(state)
  return state == 'scheduled' or state == 'retrying'
end

-- The incarnation that claimed a job last: the first part of the claim's nonce.
function record.owner(job)
  if not job.owner then
    job.owner = string.match(job.nonce, '^([^/]*)/') or ''
  end
  return job.owner
end

-- Whether it is too late to start a job that no worker has ever taken: what has started does not expire.
function record.is_overdue(unit, job)
  return job.expires_at_ms > 0 and job.expires_at_ms <= unit.now_ms and job.epoch == '0'
end

-- Whether a job has been stalled and one more death would end it.
function record.is_on_last_chance(unit, id)
  local v = unit.call('HMGET', keys.job(unit.root, id), 'stalls', 'max_stalls')
  return v[1] and numbers.read(v[1], 0) + 1 >= numbers.read(v[2], DEFAULT_MAX_STALLS)
end

-- A word that can be the name of a lane, else nil.
function record.lane_name(word)
  return word and #word <= 100 and string.match(word, '^%w[%w._-]*$')
end

function record.lane(unit, id)
  return record.lane_name(unit.call('HGET', keys.job(unit.root, id), 'lane')) or record.DEFAULT_LANE
end

-- A delayed job's member of the sorted set: with equal scores Redis orders by its bytes, and so by creation. A member
-- that is not what its record says stands for nothing.
function record.member(id, created_ms, turn)
  return created_ms .. (turn ~= '' and turn or '00000000000000') .. ':' .. id
end

-- nil of what is no member.
function record.id_of(member)
  return string.match(member, '^%d+:(.*)$')
end

-- The delayed job that a member stands for; nil of one that stands for nothing.
function record.of_member(unit, member)
  local id = record.id_of(member)
  local job = id and record.load_waiting(unit, id)
  if job and record.is_delayed(job.state) and record.member(id, job.created_ms, job.generation) == member then
    return job
  end
  return nil
end

-- Return how many keys there were.
function record.erase(unit, id)
  local root = unit.root
  return unit.call(
    'UNLINK', keys.job(root, id), keys.payload(root, id), keys.result(root, id), keys.errors(root, id),
    keys.output(root, id)
  )
end

-- Erase what lies beside a record that was lost behind our back; return how many keys that were.
function record.erase_lost(unit, id)
  if unit.call('EXISTS', keys.job(unit.root, id)) == 1 then
    return 0
  end
  return record.erase(unit, id)
end

-- Erase what an index pointed to, and only those keys that such a job can have: to look for four that are not there
-- costs 4 us. Where that record has ended by its TTL, the id may be a new job's by now.
function record.erase_ended(unit, id, is_dead_letter)
  local root = unit.root
  local key = keys.job(root, id)
  local v = unit.call('HMGET', key, 'head', 'result')
  local state, big, more = string.match(v[1] or '', '^(%l+)(%*?)(%+?)')
  if not record.is_terminal(state) or (state == 'failed') ~= is_dead_letter then
    return
  end
  local names = { key }
  if not v[2] then
    names[2] = keys.result(root, id)
  end
  if big ~= '' then
    names[#names + 1] = keys.payload(root, id)
    names[#names + 1] = keys.output(root, id)
  end
  if is_dead_letter or more ~= '' then
    names[#names + 1] = keys.errors(root, id)
  end
  unit.call('UNLINK', unpack(names))
end

-- Channels and one more; beyond the limit waiters fall back to their poll.
function record.with_channel(channels, channel)
  if not channels then
    return channel
  elseif #channels < CHANNELS * #channel and not string.find(channels, channel, 1, true) then
    return channels .. ' ' .. channel
  end
  return channels
end

-- Note one more channel to be told of a job's end.
function record.add_channel(unit, job, channel)
  local channels = record.with_channel(job.channels, channel)
  if not job.channels then
    record.add_fields(unit, job, 'channels', channels)
  elseif channels ~= job.channels then
    unit.call('HSET', job.key, 'channels', channels)
  end
end

-- Let a record and what lies beside it live for ttl_ms; nothing waits on a record with a TTL. Output has one already,
-- and must not outlive the record, or it would pass for that of the next job with the id.
function record.expire(unit, job, ttl_ms)
  unit.call('PEXPIRE', job.key, ttl_ms)
  if job.big ~= '' then
    unit.call('PEXPIRE', keys.payload(unit.root, job.id), ttl_ms)
    unit.call('PEXPIRE', keys.output(unit.root, job.id), ttl_ms, 'LT')
  end
  if job.failures ~= 0 or job.stalls ~= 0 or job.state == 'failed' then
    unit.call('PEXPIRE', keys.errors(unit.root, job.id), ttl_ms)
  end
end

-- Errors are text of the client; the time before them is the server's. The first makes a new list: what lies there is
-- of a job whose record was lost.
function record.remember_error(unit, job, blob)
  local key = keys.errors(unit.root, job.id)
  if not job.has_errors then
    unit.call('UNLINK', key)
    job.has_errors = true
  end
  unit.call('LPUSH', key, unit.now_text .. ' ' .. job.epoch .. ' ' .. blob)
  unit.call('LTRIM', key, '0', LAST_ERROR)
end
