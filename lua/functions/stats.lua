-- Counts of a queue and its work over the last minute. Reply: names and values, flat.
flags.stats = { 'no-writes' }

local BUCKET_MS, BUCKETS = limits.STATS_BUCKET_MS, limits.STATS_BUCKETS

-- How long the head of a lane's best non-empty tier has been ready, left-over entries aside.
local function oldest_ms(q, lane)
  for tier = 9, 0, -1 do
    for _, entry in ipairs(q.call('LRANGE', keys.ready(q.root, lane .. ':' .. tier), 0, 19)) do
      local gen, id = string.match(entry, '^(%d+):(.*)$')
      local state, _, _, generation, at, created = job.parts(id and q.call('HGET', keys.job(q.root, id), 'head'))
      if state == 'queued' and generation == gen then
        return math.max(0, q.now - (at ~= '' and at or created))
      end
    end
  end
  return 0
end

-- Incarnations that beat within their lease: a guess for operators, and nobody's death sentence.
local function live_workers(q)
  local n = 0
  for _, beat in ipairs(q.call('HVALS', keys.beats(q.root))) do
    local _, lease = worker.beat(beat)
    if worker.silent_ms(q, beat) <= tonumber(lease) then
      n = n + 1
    end
  end
  return n
end

function functions.stats(roots)
  local q = queue.open(roots[1])
  local config = queue.config(q)
  local oldest = 0
  for _, lane in ipairs(queue.lanes(q)) do
    oldest = math.max(oldest, oldest_ms(q, lane))
  end
  local reply = {
    'paused', config.is_paused and '1' or '0',
    'history', queue.text(q.call('ZCARD', keys.finished(q.root))),
    'dead', queue.text(q.call('ZCARD', keys.dead(q.root))),
    'workers', queue.text(live_workers(q)),
    'oldest_ms', queue.text(oldest),
    'set:history', queue.text(config.history),
    'set:dead_letters', queue.text(config.dead),
    'set:dead_letter_ttl_ms', config.dead_ttl_ms,
    'set:events', config.events,
  }
  local function append(prefix, values)
    for i = 1, #values, 2 do
      reply[#reply + 1] = prefix .. values[i]
      reply[#reply + 1] = values[i + 1]
    end
  end
  append('count:', q.call('HGETALL', keys.counts(q.root)))
  local last = q.now - q.now % BUCKET_MS
  for back = 0, BUCKETS - 1 do
    append('stat:', q.call('HGETALL', keys.stats(q.root, queue.text(last - back * BUCKET_MS))))
  end
  reply[#reply + 1] = 'window_ms'
  reply[#reply + 1] = queue.text((BUCKETS - 1) * BUCKET_MS + q.now % BUCKET_MS)
  return reply
end
