-- Keys that callers choose, apart from ids: which job came first with each, for as long as that said.
local DEFAULT_TTL_MS = '' .. limits.DEFAULT_IDEMPOTENCY_TTL_MS
local ESCAPES = { [' '] = '%20', ['%'] = '%25' } -- no blank may part a verdict

-- The verdict on a job whose key is known: how the first one with it stands, and its id. nil: it is the first.
function idempotency.standing(unit, key)
  local id = unit.call('GET', keys.idempotent(unit.root, key))
  if not id then
    return nil
  end
  local state = record.state(unit.call('HGET', keys.job(unit.root, id), 'head'))
  local escaped = string.gsub(id, '[ %%]', ESCAPES)
  return (state == 'completed' and 'completed:' or 'duplicate:') .. escaped
end

-- Note that a job has come first with a key.
function idempotency.note(unit, key, id, ttl_ms)
  unit.call('SET', keys.idempotent(unit.root, key), id, 'PX', ttl_ms or DEFAULT_TTL_MS)
end
