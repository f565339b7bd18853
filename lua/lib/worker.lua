-- Incarnations: who may claim, and what a dead one leaves behind.
function worker.key(q, incarnation)
  return q.root .. ':worker:' .. incarnation
end

-- nil when it is unknown or condemned; else the last numbers of its calls.
function worker.load(q, incarnation)
  local v = q.call('HMGET', worker.key(q, incarnation), 'claim', 'settle', 'lease')
  if not v[3] then
    return nil
  end
  return { claim = tonumber(v[1] or 0), settle = tonumber(v[2] or 0), lease = v[3] }
end

-- Send one job of an incarnation back to wait, or end it if it was asked to stop.
function worker.send_back(q, record, lists)
  if record.cancel then
    finish.cancel(q, record, '')
    return
  end
  queue.leave(q, job.owner(record), record.id)
  job.make_ready(q, record, lists)
  queue.event(q, 'put_back', record.id, record.task, record.epoch, job.owner(record), '', '', '')
end

function worker.delete(q, incarnation)
  local root = q.root
  q.call(
    'UNLINK', worker.key(q, incarnation), root .. ':processing:' .. incarnation,
    root .. ':cancels:' .. incarnation, root .. ':woken:' .. incarnation
  )
end

-- How long ago a beat came. Its value is the count (-1: condemned), the lease and the server's time.
function worker.silent_ms(q, beat)
  return math.max(0, q.now - string.match(beat, '(%d+)$')) -- the clock may have been set back
end
