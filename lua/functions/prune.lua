-- Take ended records out of the indexes once they are gone or too old: a bounded piece a call.
-- Reply: the next cursor, '' at the end.
local BATCH = 200

local function prune_dead(q, ttl_ms)
  local old = q.call('ZRANGEBYSCORE', q.root .. ':dead', '-inf', queue.text(q.now - ttl_ms), 'LIMIT', 0, BATCH)
  for _, id in ipairs(old) do
    q.call('ZREM', q.root .. ':dead', id)
    job.erase_ended(q, id, true)
  end
  return #old
end

function functions.prune(keys, args)
  local q = queue.open(keys[1])
  local offset = tonumber(args[1])
  local dropped = prune_dead(q, queue.config(q).dead_ttl_ms)
  local ids = q.call('ZRANGE', q.root .. ':finished', offset, offset + BATCH - 1)
  local kept = 0
  for _, id in ipairs(ids) do
    local state = q.call('HGET', job.key(q, id), 'state')
    if state == 'completed' or state == 'cancelled' then
      kept = kept + 1
    else
      q.call('ZREM', q.root .. ':finished', id)
    end
  end
  queue.close(q)
  if #ids < BATCH and dropped < BATCH then
    return ''
  end
  return queue.text(offset + kept)
end
