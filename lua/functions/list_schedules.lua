-- A page of schedules by id, of one app or of all. Reply: the time, the cursor of the next page ('' at the end), then
-- five words a schedule.
function functions.list_schedules(roots, args)
  local cursor, limit, app = unpack(args)
  local unit = schedules.open(roots)
  local index = app and keys.schedules_of(unit.root, app) or keys.schedules(unit.root)
  -- One more than asked for tells whether there is a next page.
  local ids = unit.call('ZRANGE', index, '(' .. cursor, '+', 'BYLEX', 'LIMIT', '0', limit + 1)
  local page = schedules.load_page(unit, ids, tonumber(limit))
  for n = #page, 1, -1 do
    if app and page[n].app ~= app then -- the place is left over from a record that was lost
      table.remove(page, n)
    end
  end
  return schedules.reply(unit, page.looked < #ids and ids[page.looked] or '', page)
end
