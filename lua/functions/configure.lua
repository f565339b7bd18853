-- Set what a queue keeps and takes. Arguments: names and values, flat. Reply: ok.
function functions.configure(roots, args)
  local unit = unit.open(roots[1])
  local most = settings.of(unit).max_active
  settings.set(unit, unpack(args))
  if settings.of(unit).max_active ~= most then
    wake.all(unit)
  end
  unit:close()
  return 'ok'
end
