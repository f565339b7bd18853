-- Allow claims again and wake a consumer. Reply: ok.
function functions.resume(roots)
  local unit = unit.open(roots[1])
  unit.call('HDEL', keys.config(unit.root), 'paused')
  wake.all(unit)
  unit:close()
  return 'ok'
end
