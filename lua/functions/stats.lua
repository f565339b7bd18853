-- Counts of a queue and its work over the last minute. Reply: names and values, flat.

local BUCKET_MS, BUCKETS = limits.STATS_BUCKET_MS, limits.STATS_BUCKETS

-- How long the head of a lane's best non-empty tier has been ready, left-over entries aside.
local function oldest_ms(unit, lane)
  for tier = 9, 0, -1 do
    for _, entry in ipairs(entries.of(unit, lane .. ':' .. tier, 0, 20)) do
      local gen, id = string.match(entry, '^(%d+):(.*)$')
      local head = id and unit.call('HGET', keys.job(unit.root, id), 'head')
      local state, _, _, generation, at_ms, created_ms = record.parts(head)
      if state == 'queued' and generation == gen then
        return math.max(0, unit.now_ms - (at_ms ~= '' and at_ms or created_ms))
      end
    end
  end
  return 0
end

-- Incarnations that beat within their lease: a guess for operators, and nobody's death sentence.
local function live_workers(unit)
  local n = 0
  for _, beat in ipairs(unit.call('HVALS', keys.beats(unit.root))) do
    local _, lease_ms = incarnations.beat(beat)
    if incarnations.silent_ms(unit, beat) <= tonumber(lease_ms) then
      n = n + 1
    end
  end
  return n
end

function functions.stats(roots)
  local unit = unit.open(roots[1])
  local config = settings.of(unit)
  local oldest = 0
  for _, lane in ipairs(counts.lanes(unit)) do
    oldest = math.max(oldest, oldest_ms(unit, lane))
  end
  local reply = {
    'paused', config.is_paused and '1' or '0',
    'history', numbers.text(unit.call('ZCARD', keys.finished(unit.root))),
    'dead', numbers.text(unit.call('ZCARD', keys.dead(unit.root))),
    'workers', numbers.text(live_workers(unit)),
    'oldest_ms', numbers.text(oldest),
    'set:history', numbers.text(config.history),
    'set:dead_letters', numbers.text(config.dead_letters),
    'set:dead_letter_ttl_ms', config.dead_letter_ttl_ms,
    'set:events', config.events,
    'set:events_cap', config.events_cap,
    'set:on_failed', config.on_failed,
    'set:max_active', numbers.text(config.max_active),
    'set:max_length', numbers.text(config.max_length),
    'set:weight', numbers.text(config.weight),
    'set:aging', numbers.text(config.aging),
  }
  local function append(prefix, values)
    for i = 1, #values, 2 do
      reply[#reply + 1] = prefix .. values[i]
      reply[#reply + 1] = values[i + 1]
    end
  end
  for _, strike in ipairs((config.is_struck or config.strikes_version ~= 0) and strikes.all(unit) or {}) do
    local task = string.match(strike.id, '^task:(.*)$')
    reply[#reply + 1], reply[#reply + 2] = task and 'paused_task:' .. task or 'strikes', '1'
  end
  append('count:', unit.call('HGETALL', keys.counts(unit.root)))
  for back = 0, BUCKETS - 1 do
    append('stat:', unit.call('HGETALL', stats.key(unit, unit.now_ms - back * BUCKET_MS)))
  end
  reply[#reply + 1] = 'window_ms'
  reply[#reply + 1] = numbers.text((BUCKETS - 1) * BUCKET_MS + unit.now_ms % BUCKET_MS)
  return reply
end
