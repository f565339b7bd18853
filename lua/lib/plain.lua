-- The short ways of plain jobs, which ask for nothing: their records have no field that only few have, and nobody
-- waits. Most jobs are plain, and many that come in one call look alike. Each function answers nil where a job is not
-- plain enough; then the general way does the same. What they do is counted by the caller, for many at once.
local INLINE_LIMIT, NEW_FIELDS, NEW_FIELDS_OF_BIG = record.INLINE_LIMIT, 3, 2

-- The head of all jobs that come in this call and are ready at once.
local function new_head(unit)
  local head = 'queued\t' .. unit.generation .. '\t\t' .. unit.now_text .. '\t'
  unit.new_head = head
  return head
end

-- Write the record of a new job.
local function write(unit, key, id, head, kind, task, payload)
  if #payload > INLINE_LIMIT then
    head = record.with_big(head)
    -- SET answers with a table, which costs 1,100 instructions more.
    local place = keys.payload(unit.root, id)
    if unit.raw('SETNX', place, payload) == 0 then
      unit.raw('SET', place, payload)
    end
    if unit.try('HSET', key, 'head', head, 'task', task) ~= NEW_FIELDS_OF_BIG then
      unit.call('HSET', key, 'head', head, 'task', task)
    end
  elseif unit.try('HSET', key, 'head', head, 'task', task, 'payload', payload) ~= NEW_FIELDS then
    -- It has more already, or the key is a stranger's.
    unit.call('HSET', key, 'head', head, 'task', task, 'payload', payload)
  end
  if not kind.is_default_tier then
    unit.call('HSET', key, 'tier', kind.tier)
  end
end

-- Store a job of the default lane, ready at once.
function plain.store(unit, key, id, kind, task, payload)
  write(unit, key, id, unit.new_head or new_head(unit), kind, task, payload)
  entries.note(unit, 'tails', kind.line, unit.generation .. ':' .. id)
  events.add(unit, 'queued', id, task, events.NEW)
  return 'queued'
end

-- Store such jobs of one kind and task. Their ids, each free, and payloads take turns from `first` to `last`; their
-- keys are made here unless they are known.
function plain.store_alike(unit, kind, task, words, first, last, known_keys)
  local root, try, head, n = unit.root, unit.try, unit.new_head or new_head(unit), 0
  local limit = kind.is_default_tier and INLINE_LIMIT or -1
  for i = first, last, 2 do
    n = n + 1
    local id, payload = words[i], words[i + 1]
    local key = known_keys and known_keys[n] or keys.job(root, id)
    -- Most are written here: to call `write` for each costs 600 instructions.
    if #payload > limit or try('HSET', key, 'head', head, 'task', task, 'payload', payload) ~= NEW_FIELDS then
      write(unit, key, id, head, kind, task, payload)
    end
  end
  entries.note_alike(unit, kind.line, words, first, last)
  events.add_alike(unit, 'queued', task, words, first, last, events.NEW)
end

-- What the new jobs have in common that one call claims.
function plain.starts(own)
  return {
    own = own, failures = '0', stalls = '0', epoch = '1', options = '', source = '', generation = '', head = '',
    created_ms = '', wait_ms = '', numbers = '', tail = '',
  }
end

-- Return how a queued job starts that is as it came; the words of its time are noted by `note_times`.
function plain.take(unit, start, head, generation, note_times)
  if head == start.source then
    return generation == start.generation and start
  end
  local big, created_ms = string.match(head or '', '^queued(%*?)\t' .. generation .. '\t\t(%d+)\t$')
  if not big then
    return nil
  end
  start.source, start.generation, start.created_ms = head, generation, created_ms
  start.head = 'active' .. big .. '\t\t' .. unit.now_text .. '\t' .. created_ms .. '\t'
  note_times(unit, start, created_ms)
  return start
end

-- What the jobs that came and were claimed together have in common when they end.
function plain.ends(own, incarnation)
  return { own = own, source = '', head = '', created_ms = '', epoch = record.claim_parts(own),
    incarnation = incarnation, run_ms = '', tail = '' }
end

-- Complete an active job that has nothing beside its record.
function plain.complete(unit, ends, key, id, task, head, result, result_ttl_ms, keep_ms, run_ms)
  if #result > INLINE_LIMIT or keep_ms == '0' or result_ttl_ms ~= keep_ms then
    return nil
  end
  if head ~= ends.source then
    local created_ms = string.match(head or '', '^active\t\t%d+\t(%d+)')
    if not created_ms then
      return nil
    end
    ends.created_ms, ends.run_ms = created_ms, false -- the tail is another
    ends.source, ends.head = head, 'completed\t\t' .. unit.now_text .. '\t' .. created_ms .. '\t'
  end
  if run_ms ~= ends.run_ms then
    ends.run_ms, ends.tail = run_ms, events.tail(ends.epoch, ends.incarnation, '', run_ms, ends.created_ms)
  end
  unit.raw('HSET', key, 'head', ends.head .. run_ms, 'result', result)
  unit.raw('PEXPIRE', key, keep_ms)
  events.add(unit, 'completed', id, task, ends.tail)
  stats.observe(unit, 'run:', run_ms)
  return true
end
