-- Store the jobs of occurrences, each only if it is later than the last of its schedule that was fired here; atomic
-- because two schedulers may fire the same. Reply: a verdict each, a blank between two, or late and nothing was stored.
-- Arguments: until_ms, n, schedule id and instant of n occurrences, then the jobs of these.

-- The last instants are in a hash for each period, which ends by itself. One is written to that of now, and looked for
-- in those beside it too, so it is kept for a period at least; the later one is there if the clock was set back.
local PERIOD_MS = limits.FIRED_TTL_MS
local BESIDE = { -1, 0, 1 }

local function period(unit)
  return math.floor(unit.now_ms / PERIOD_MS)
end

-- The last instants of these schedules that were fired, by their ids.
local function read_marks(unit, args, n)
  local ids, marks = {}, {}
  for i = 1, n do
    ids[i] = args[2 * i + 1]
  end
  for _, offset in ipairs(BESIDE) do
    local key = keys.fired(unit.root, numbers.text(period(unit) + offset))
    for i, instant in ipairs(unit.call('HMGET', key, unpack(ids))) do
      marks[ids[i]] = math.max(marks[ids[i]] or -1, numbers.read(instant, -1))
    end
  end
  return marks
end

-- Return the words of the jobs that are to be stored, and the numbers of their occurrences; move the marks on.
local function choose(args, n, marks)
  local words, chosen, at = {}, {}, 2 * n + 3
  for i = 1, n do
    local id, instant, width = args[2 * i + 1], tonumber(args[2 * i + 2]), batch.width(args, at)
    if instant > marks[id] then
      marks[id], chosen[#chosen + 1] = instant, i
      for offset = 0, width - 1 do
        words[#words + 1] = args[at + offset]
      end
    end
    at = at + width
  end
  return words, chosen
end

local function write_marks(unit, args, chosen, marks)
  local key, pairs_of = keys.fired(unit.root, numbers.text(period(unit))), {}
  for _, i in ipairs(chosen) do
    local id = args[2 * i + 1]
    pairs_of[#pairs_of + 1], pairs_of[#pairs_of + 2] = id, numbers.text(marks[id])
  end
  unit.call('HSET', key, unpack(pairs_of))
  unit.call('PEXPIRE', key, numbers.text(2 * PERIOD_MS))
end

function functions.fire(roots, args)
  local until_ms, n = tonumber(args[1]), tonumber(args[2])
  local unit, verdicts = unit.open(roots[1]), {}
  if unit.now_ms > until_ms then
    return 'late'
  end
  local marks = read_marks(unit, args, n)
  local words, chosen = choose(args, n, marks)
  for i = 1, n do
    verdicts[i] = 'duplicate'
  end
  local told = 0
  for verdict in string.gmatch(batch.store(unit, words, 1, true), '%S+') do
    told = told + 1
    verdicts[chosen[told]] = verdict
  end
  if #chosen > 0 then
    write_marks(unit, args, chosen, marks)
  end
  lines.close(unit)
  return table.concat(verdicts, ' ')
end
