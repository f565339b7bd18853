-- How many jobs are where. Only moves change it, and the repair.

-- How many jobs of a lane are ready, short of what this call has not written yet.
function counts.ready(unit, lane)
  local key = keys.counts(unit.root)
  if lane ~= limits.DEFAULT_LANE then
    return tonumber(unit.call('HGET', key, 'queued:' .. lane)) or 0
  end
  local v = unit.call('HMGET', key, 'queued', 'elsewhere')
  return (tonumber(v[1]) or 0) - (tonumber(v[2]) or 0)
end

-- The default lane and those others that have ready jobs.
function counts.lanes(unit)
  local lanes = { limits.DEFAULT_LANE }
  for _, name in ipairs(unit.call('HKEYS', keys.counts(unit.root))) do
    lanes[#lanes + 1] = string.match(name, '^queued:(.*)$')
  end
  return lanes
end
