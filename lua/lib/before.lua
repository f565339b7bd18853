-- How many jobs come before another one. What is not counted in a bounded time is told as "at least": a > before it.
local REACH, LOOKS = limits.BEFORE_REACH, limits.BEFORE_LOOKS

-- How many entries stand before one in its line; nil where it is not found, true behind it where it is too
-- deep to tell.
local function in_line(unit, line, entry)
  local list = keys.ready(unit.root, line)
  local length = unit.call('LLEN', list)
  local early, rank = 0, false
  if settings.of(unit).has_gates then
    early, rank = entries.early(unit, line), unit.call('ZRANK', keys.ordered(unit.root, line), entry)
  end
  if rank then
    return rank < early and rank or length + rank
  end
  local at = unit.call('LPOS', list, entry, 'MAXLEN', REACH)
    or unit.call('LPOS', list, entry, 'RANK', '-1', 'MAXLEN', REACH)
  return at and at + early or nil, not at and length > 2 * REACH
end

-- The entries of a lane's tiers, and how many there are in all.
local function sizes(unit, lane)
  local found, total = {}, 0
  for tier = 0, 9 do
    local line = lane .. ':' .. tier
    found[tier] = unit.call('LLEN', keys.ready(unit.root, line)) + unit.call('ZCARD', keys.ordered(unit.root, line))
    total = total + found[tier]
  end
  return found, total
end

-- How many of the first n entries of a lane stand for jobs.
local function standing(unit, lane, n)
  local count = 0
  for tier = 9, 0, -1 do
    local list = n > 0 and entries.of(unit, lane .. ':' .. tier, 0, n) or {}
    n = n - #list
    for _, entry in ipairs(list) do
      count = count + (entries.stands(unit, entry) and 1 or 0)
    end
  end
  return count
end

-- How many are to be claimed before a ready job of its lane, '' where it has no place there.
function before.ready(unit, job)
  local its_tier = tonumber(job.tier)
  local sizes_of, total = sizes(unit, job.lane)
  local n, is_deep = in_line(unit, job.lane .. ':' .. job.tier, job.generation .. ':' .. job.id)
  if not n and not is_deep then
    return ''
  end
  n = n or REACH
  for tier = its_tier + 1, 9 do
    n = n + sizes_of[tier]
  end
  local left_over = math.max(0, total - counts.ready(unit, job.lane))
  if left_over == 0 and not is_deep then
    return numbers.text(n)
  elseif n <= LOOKS then
    return numbers.text(standing(unit, job.lane, n))
  end
  return '>' .. numbers.text(math.max(0, n - left_over))
end

-- How many stand before a job in the line of a gate, '' where it has no place there.
function before.parked(unit, job, gate)
  local rank = unit.call('ZRANK', keys.line(unit.root, gate.name), job.id)
  return rank and numbers.text(rank) or ''
end
