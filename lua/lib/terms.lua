-- The terms of a queue's limits: what workers and jobs declare, and what an operator has set over that. Terms are four
-- numbers: concurrency, rate, rate_ms and burst, 0 for none. A limit's field has both, a tab between them.
local TERMS, BOTH = '^(%d+) (%d+) (%d+) (%d+)$', '^([^\t]*)\t([^\t]*)$'

-- Return the terms that a text says; nil where it says none.
local function parse(text)
  local concurrency, rate, rate_ms, burst = string.match(text or '', TERMS)
  if not concurrency or #concurrency > 7 or #rate > 7 or #rate_ms > 12 or #burst > 7 then
    return nil
  end
  return {
    concurrency = tonumber(concurrency), rate = tonumber(rate), rate_ms = tonumber(rate_ms), burst = tonumber(burst),
  }
end

-- Return what is declared of a limit, and what an operator has set; '' for nothing.
local function read(unit, limit)
  local declared, operator = string.match(unit.call('HGET', keys.limits(unit.root), limit) or '', BOTH)
  return declared or '', operator or ''
end

local function write(unit, limit, declared, operator)
  local key = keys.limits(unit.root)
  if declared .. operator == '' then
    unit.call('HDEL', key, limit)
  else
    unit.call('HSET', key, limit, declared .. '\t' .. operator)
  end
  unit.terms = false
end

-- The limit of a gate.
function terms.limit_of(gate)
  return string.match(gate, '^[^\t]*')
end

-- The terms of a limit that hold now, false for none.
function terms.of(unit, limit)
  local window = turns.terms(limit)
  if window then
    return window
  end
  local known = unit.terms
  if not known then
    known = {}
    unit.terms = known
  end
  if known[limit] == nil then
    known[limit] = parse(terms.text(unit, limit)) or false
  end
  return known[limit]
end

-- The same as text, '' for none.
function terms.text(unit, limit)
  local declared, operator = read(unit, limit)
  return operator ~= '' and operator or declared
end

-- Note a gate that the call has met without terms.
function terms.lack(unit, gate)
  local limit = terms.limit_of(gate.name)
  unit.lacking = unit.lacking or {}
  unit.lacking[limit] = unit.lacking[limit] or {}
  table.insert(unit.lacking[limit], gate)
end

-- Note the terms that a job brings, which hold where none are known yet. Return the gates that have lacked them; nil:
-- they do not hold.
function terms.bring(unit, limit, text)
  if terms.of(unit, limit) or not parse(text) then
    return nil
  end
  local _, operator = read(unit, limit)
  write(unit, limit, text, operator)
  return unit.lacking and unit.lacking[limit]
end

-- Note those that a worker declares; return whether the limit has new terms by that.
function terms.declare(unit, limit, text)
  local declared, operator = read(unit, limit)
  if declared == text or not parse(text) then
    return false
  end
  write(unit, limit, text, operator)
  return operator == ''
end

-- Note those that an operator sets, '' for none; return whether the limit has new terms by that.
function terms.set(unit, limit, text)
  local declared, operator = read(unit, limit)
  write(unit, limit, declared, text)
  return (text ~= '' and text or declared) ~= (operator ~= '' and operator or declared)
end

-- All limits with their fields, flat.
function terms.all(unit)
  return unit.call('HGETALL', keys.limits(unit.root))
end
