-- Store progress and output of running attempts, each only for the claim that owns it; what is there already, of a
-- repeated call, is passed. Reply: ok or stale a report.
flags.report = {} -- refused when memory is full: it only grows, and no outcome rests on it

local KEPT = '1000' -- pieces of output a job
local TTL_MS = '3600000' -- of the output, from its last piece on
local HEAD = 7 -- id, epoch, nonce, fraction ('' for none), text, number of the first piece, number of pieces

-- A piece is the entry <epoch>-<number>. Those of an attempt before make room.
local function write_output(q, id, epoch, args, at, count)
  local key = q.root .. ':output:' .. id
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
  q.call('PEXPIRE', key, TTL_MS)
  q.call('HSET', job.key(q, id), 'big', '1')
end

local function report(q, args, at, count)
  local id, epoch, nonce, fraction, text = unpack(args, at, at + 4)
  local key = job.key(q, id)
  local v = q.call('HMGET', key, 'state', 'epoch', 'claim', 'task', 'progress')
  if v[1] ~= 'active' or v[2] ~= epoch or v[3] ~= nonce then
    return 'stale'
  end
  if count > 0 then
    write_output(q, id, epoch, args, at, count)
  end
  local progress = epoch .. '\t' .. fraction .. '\t' .. text
  if fraction ~= '' and progress ~= v[5] then
    q.call('HSET', key, 'progress', progress)
    queue.event(q, 'progress', id, v[4], epoch, job.owner({ claim = nonce }), '', '', fraction .. ' ' .. text)
  end
  return 'ok'
end

function functions.report(keys, args)
  local q = queue.open(keys[1])
  local verdicts, at = {}, 1
  while at <= #args do
    local count = tonumber(args[at + HEAD - 1])
    verdicts[#verdicts + 1] = report(q, args, at, count)
    at = at + HEAD + count
  end
  queue.close(q)
  return verdicts
end
