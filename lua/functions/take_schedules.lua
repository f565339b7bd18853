-- Hand out schedules that are due, and hide them for a while; atomic because two schedulers may ask together.
-- Reply: the time, ms until the next is due ('' for never), then five words a schedule, by when its
-- turn came: when it fell due, or the hold of it ended.
function functions.take_schedules(roots, args)
  local limit, hold_ms, channel = unpack(args)
  local unit = schedules.open(roots)
  if channel ~= '' then
    schedules.hear(unit, channel)
  end
  schedules.mend(unit)
  local due = keys.schedules_due(unit.root)
  local ids = unit.call('ZRANGE', due, '-inf', unit.now_text, 'BYSCORE', 'LIMIT', '0', limit)
  local page = schedules.load_page(unit, ids, tonumber(limit))
  for _, id in ipairs(page.missing) do
    schedules.erase(unit, id)
  end
  local held_until = numbers.text(unit.now_ms + hold_ms)
  for _, schedule in ipairs(page) do
    schedules.look_at(unit, schedule.id, held_until)
  end
  local next_ms = schedules.first_ms(unit)
  return schedules.reply(unit, next_ms and numbers.text(math.max(0, next_ms - unit.now_ms)) or '', page)
end
