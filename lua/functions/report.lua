-- Store progress and output of running attempts, each only for the claim that owns it; what is there already, of a
-- repeated call, is passed. Reply: ok or stale a report.
flags.report = {} -- refused when memory is full: it only grows, and no outcome rests on it

local KEPT = '' .. limits.PIECES_LIMIT -- pieces of output a job
local HEAD = 7 -- id, epoch, nonce, fraction ('' for none), text, number of the first piece, number of pieces

-- A piece is the entry <epoch>-<number>. Those of an attempt before make room.
local function write_output(q, record, args, at, count)
  local id, epoch = record.id, record.epoch
  local key = keys.output(q.root, id)
  if not q.call('HGET', record.key, 'output') then
    q.call('UNLINK', key) -- that of a job whose record was lost
    q.call('HSET', record.key, 'output', '1')
  end
  local last = q.call('XREVRANGE', key, '+', '-', 'COUNT', '1')[1]
  local last_epoch, last_number = string.match(last and last[1] or '', '^(%d+)-(%d+)$')
  if last and last_epoch ~= epoch then
    q.call('UNLINK', key)
    last_number = nil
  end
  local first = tonumber(args[at + HEAD - 2])
  for i = 0, count - 1 do
    if first + i > tonumber(last_number or -1) then
      q.call('XADD', key, epoch .. '-' .. queue.text(first + i), 'c', args[at + HEAD + i])
    end
  end
  q.call('XTRIM', key, 'MAXLEN', KEPT)
  q.call('PEXPIRE', key, job.OUTPUT_TTL_MS)
  if record.big == '' then
    q.call('HSET', record.key, 'head', job.with_big(record.head))
  end
end

local function report(q, args, at, count)
  local id, epoch, nonce, fraction, text = unpack(args, at, at + 4)
  local record = job.load(q, id)
  if not record or record.state ~= 'active' or record.epoch ~= epoch or record.claim ~= nonce then
    return 'stale'
  end
  if count > 0 then
    write_output(q, record, args, at, count)
  end
  local progress = epoch .. '\t' .. fraction .. '\t' .. text
  if fraction ~= '' and progress ~= q.call('HGET', record.key, 'progress') then
    q.call('HSET', record.key, 'progress', progress)
    queue.event(q, 'progress', id, record.task, epoch, job.owner(record), '', '', fraction .. ' ' .. text)
  end
  return 'ok'
end

function functions.report(roots, args)
  local q = queue.open(roots[1])
  local verdicts, at = {}, 1
  while at <= #args do
    local count = tonumber(args[at + HEAD - 1])
    verdicts[#verdicts + 1] = report(q, args, at, count)
    at = at + HEAD + count
  end
  queue.close(q)
  return verdicts
end
