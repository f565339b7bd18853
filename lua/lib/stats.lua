-- A queue's work, counted in spans of time.
local BUCKET_MS, TTL_MS = limits.STATS_BUCKET_MS, '' .. limits.STATS_TTL_MS
local SHORT = 10000
local bounds = { ['wait:'] = {}, ['run:'] = {} } -- names of histogram fields of short times, made once

local last_ms, last_text -- of the span that was asked for last: to write a number costs 2,500 instructions

function stats.key(unit, at_ms)
  local since_ms = at_ms - at_ms % BUCKET_MS
  if since_ms ~= last_ms then
    last_ms, last_text = since_ms, numbers.text(since_ms)
  end
  return keys.stats(unit.root, last_text)
end

function stats.tally(unit, field, n)
  local tallies = unit.stats
  if tallies then
    tallies[field] = (tallies[field] or 0) + (n or 1)
  else
    unit.stats = { [field] = n or 1 }
  end
end

local function bound(value_ms)
  if value_ms <= 0 then
    return '0'
  end
  return numbers.text(math.ceil(1.1 ^ math.ceil(math.log(value_ms) / math.log(1.1) - 1e-9)))
end

-- Upper bounds of a histogram that grows by a tenth: any percentile is at most 10 % too high. The time is text.
function stats.observe(unit, name, value_ms)
  local fields = bounds[name]
  local field = fields[value_ms]
  if not field then
    local number = tonumber(value_ms)
    field = name .. bound(number)
    if number < SHORT then
      fields[value_ms] = field
    end
  end
  stats.tally(unit, field)
end

function stats.write(unit, call)
  if not (unit.stats and next(unit.stats)) then
    return
  end
  local key = stats.key(unit, unit.now_ms)
  for field, n in pairs(unit.stats) do
    unit.is_new_bucket = call('HINCRBY', key, field, numbers.text(n)) == n or unit.is_new_bucket
    unit.stats[field] = nil
  end
  if unit.is_new_bucket then -- perhaps the first field; the TTL runs from then on
    call('PEXPIRE', key, TTL_MS)
  end
end
