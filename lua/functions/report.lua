-- Store progress and output of running attempts, each only for the claim that owns it; what is there already, of a
-- repeated call, is passed. Reply: ok or stale a report.

local KEPT = '' .. limits.PIECES_LIMIT -- pieces of output a job
local HEAD = 7 -- id, epoch, nonce, fraction ('' for none), text, number of the first piece, number of pieces

-- A piece is the entry <epoch>-<number>. Those of an attempt before make room.
local function write_output(unit, job, args, at, count)
  local id, epoch = job.id, job.epoch
  local key = keys.output(unit.root, id)
  if not unit.call('HGET', job.key, 'output') then
    unit.call('UNLINK', key) -- that of a job whose record was lost
    unit.call('HSET', job.key, 'output', '1')
  end
  local last = unit.call('XREVRANGE', key, '+', '-', 'COUNT', '1')[1]
  local last_epoch, last_number = string.match(last and last[1] or '', '^(%d+)-(%d+)$')
  if last and last_epoch ~= epoch then
    unit.call('UNLINK', key)
    last_number = nil
  end
  local first = tonumber(args[at + HEAD - 2])
  for i = 0, count - 1 do
    if first + i > tonumber(last_number or -1) then
      unit.call('XADD', key, epoch .. '-' .. numbers.text(first + i), 'c', args[at + HEAD + i])
    end
  end
  unit.call('XTRIM', key, 'MAXLEN', KEPT)
  unit.call('PEXPIRE', key, record.OUTPUT_TTL_MS)
  if job.big == '' then
    unit.call('HSET', job.key, 'head', record.with_big(job.head))
  end
end

local function report(unit, args, at, count)
  local id, epoch, nonce, fraction, text = unpack(args, at, at + 4)
  local job = record.load(unit, id)
  if not job or job.state ~= 'active' or job.epoch ~= epoch or job.nonce ~= nonce then
    return 'stale'
  end
  if count > 0 then
    write_output(unit, job, args, at, count)
  end
  local progress = epoch .. '\t' .. fraction .. '\t' .. text
  if fraction ~= '' and progress ~= unit.call('HGET', job.key, 'progress') then
    unit.call('HSET', job.key, 'progress', progress)
    local tail = events.tail(epoch, record.owner(job), '', '', fraction .. ' ' .. text)
    events.add(unit, 'progress', id, job.task, tail)
  end
  return 'ok'
end

function functions.report(roots, args)
  local unit = unit.open(roots[1])
  local verdicts, at = {}, 1
  while at <= #args do
    local count = tonumber(args[at + HEAD - 1])
    verdicts[#verdicts + 1] = report(unit, args, at, count)
    at = at + HEAD + count
  end
  unit:close()
  return verdicts
end
