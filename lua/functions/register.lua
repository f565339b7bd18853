-- Make an incarnation known, so that whatever it claims can be found if it dies.
-- Reply: ok, or NEWLAYOUT when a newer release has written this queue.
-- Arguments: incarnation, lease_ms, info, channel, who, how many tasks, of each its name and lane, of each limit its
-- name and terms.
local LAYOUT, FIRST_TASK = 1, 7

function functions.register(roots, args)
  local incarnation, lease_ms, info, channel, who = unpack(args)
  local last_task = FIRST_TASK + 2 * args[FIRST_TASK - 1] - 1
  local unit = unit.open(roots[1])
  local layout = numbers.read(unit.call('HGET', keys.config(unit.root), 'layout'), LAYOUT)
  if layout > LAYOUT then
    return redis.error_reply('NEWLAYOUT the queue has layout ' .. layout .. ', this release knows ' .. LAYOUT)
  end
  -- The lanes of the tasks that it knows.
  for at = FIRST_TASK, last_task, 2 do
    local task, lane = args[at], args[at + 1]
    if lane == record.DEFAULT_LANE then
      unit.call('HDEL', keys.lanes(unit.root), task)
    else
      unit.call('HSET', keys.lanes(unit.root), task, lane)
    end
  end
  unit.call('HSET', keys.config(unit.root), 'layout', LAYOUT)
  if not incarnations.get(unit, incarnation, 'lease_ms') then
    incarnations.note(unit, 'joined', incarnation, who)
  end
  local key = keys.worker(unit.root, incarnation)
  unit.call(
    'HSET', key, 'lease_ms', lease_ms, 'info', info, 'registered_ms', unit.now_text, 'channel', channel, 'who', who
  )
  unit.call('HSETNX', key, 'claim_number', '0')
  unit.call('HSETNX', key, 'settle_number', '0')
  unit.call('HSET', keys.beats(unit.root), incarnation, '0 ' .. lease_ms .. ' ' .. unit.now_text)
  local looks = limits.GATES_LOOKS
  for at = last_task + 1, #args, 2 do
    if terms.declare(unit, args[at], args[at + 1]) then
      looks = lines.follow(unit, args[at], looks)
    end
  end
  lines.close(unit)
  return 'ok'
end
