-- A queue's work, counted in spans of time.
local BUCKET_MS, TTL_MS = limits.STATS_BUCKET_MS, '' .. limits.STATS_TTL_MS
local SHORT = 10000
local bounds = { ['wait:'] = {}, ['run:'] = {} } -- names of histogram fields of short times, made once

function stats.key(unit, at_ms)
  return keys.stats(unit.root, numbers.text(at_ms - at_ms % BUCKET_MS))
end

function stats.tally(unit, field, n)
  unit.stats[field] = (unit.stats[field] or 0) + (n or 1)
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
  unit.stats[field] = (unit.stats[field] or 0) + 1
end

function stats.write(unit, call)
  if not next(unit.stats) then
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
