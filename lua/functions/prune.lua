-- Take ended records out of the indexes once they are gone or too old: a bounded piece a call.
-- Reply: the next cursor, '' at the end.
local BATCH = limits.PRUNED_A_CALL

local function prune_dead(q, ttl_ms)
  local old = q.call('ZRANGEBYSCORE', keys.dead(q.root), '-inf', queue.text(q.now - ttl_ms), 'LIMIT', 0, BATCH)
  for _, id in ipairs(old) do
    q.call('ZREM', keys.dead(q.root), id)
    job.erase_ended(q, id, true)
  end
  return #old
end

-- Take the places out of an index whose records are gone, from `offset` on; return the next offset, nil at its end.
local function prune_places(q, key, offset)
  local ids = q.call('ZRANGE', key, offset, offset + BATCH - 1)
  local kept = 0
  for _, id in ipairs(ids) do
    local state = job.state(q.call('HGET', keys.job(q.root, id), 'head'))
    if job.is_terminal(state) and (state == 'failed') == (key == keys.dead(q.root)) then
      kept = kept + 1
    else
      q.call('ZREM', key, id)
    end
  end
  return #ids == BATCH and offset + kept or nil
end

-- The cursor is an offset in the history, or after a `d` one in the dead letters.
function functions.prune(roots, args)
  local q = queue.open(roots[1])
  local index, offset = string.match(args[1], '^(d?)(%d+)$')
  local dropped = prune_dead(q, queue.config(q).dead_ttl_ms)
  local next_offset = tonumber(offset)
  if index == '' then
    next_offset = prune_places(q, keys.finished(q.root), next_offset)
    if next_offset then
      queue.close(q)
      return queue.text(next_offset)
    end
    next_offset = 0
  end
  next_offset = prune_places(q, keys.dead(q.root), next_offset)
  queue.close(q)
  if next_offset or dropped == BATCH then
    return 'd' .. queue.text(next_offset or 0)
  end
  return ''
end
