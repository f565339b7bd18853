-- Bring what is derived from records back to what is there, where records were lost behind our back: the processing
-- sets, the delayed set, what is blocked, what lies beside a record, the counts, and the places of limits. A bounded
-- piece a call; a queue in order is not changed. Reply: the next cursor, '' at the end, and how many things were put
-- right.
local ORDER = { 'active', 'delayed', 'ready', 'blocked', 'gates' }
local REST_MS, WALK_MS = '5000', '30000'

-- One walk of a queue at a time, however many sweep it, and a rest between two.
local function may_begin(unit)
  local key = keys.walk(unit.root)
  return unit.call('SET', key, '1', 'NX', 'PX', REST_MS) or unit.call('PTTL', key) == -1
end

local function tally_text(tally)
  local words = {}
  for name, n in pairs(tally or {}) do
    words[#words + 1] = name .. '=' .. numbers.text(n)
  end
  return table.concat(words, ' ')
end

-- A cursor is stage, f where sizes alone do not do, place, fingerprint and tally, a tab between two.
function functions.repair(roots, args)
  local unit = unit.open(roots[1])
  local stage, full, place, seen, tally = string.match(args[1], '^(%d)\t(f?)\t([^\t]*)\t(%x*)\t(.*)$')
  if not stage and not may_begin(unit) then
    return { '', '0' }
  end
  local work = {
    looked = 0, mended = 0, lanes = { unpack(args, 2) }, seen = seen ~= '' and seen, tally = {}, is_full = full == 'f',
  }
  for name, n in string.gmatch(tally or '', '(%S+)=(%d+)') do
    work.tally[name] = tonumber(n)
  end
  for number = tonumber(stage or 1), #ORDER do
    local name = ORDER[number]
    if (place or '') ~= '' or full == 'f' or not walk.has_its_size(unit, name, work) then
      local go_on = name == 'gates' and recounts.go_on or walk.go_on
      local next_place = go_on(unit, work, place or '', name)
      if next_place then
        lines.close(unit)
        unit.call('SET', keys.walk(unit.root), '1', 'PX', WALK_MS)
        local words = { number, full or '', next_place, work.seen or '', tally_text(work.tally) }
        return { table.concat(words, '\t'), numbers.text(work.mended) }
      end
    end
    place, work.seen, work.tally = '', nil, {}
  end
  lines.close(unit)
  unit.call('SET', keys.walk(unit.root), '1', 'PX', REST_MS)
  return { '', numbers.text(work.mended) }
end
