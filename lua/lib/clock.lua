-- The server's clock, read once per call: the only wall clock there is.
-- Milliseconds since the epoch, and a stamp in microseconds that comes round every 28 hours.
function clock.read()
  local t = redis.call('TIME')
  local seconds, micros = tonumber(t[1]), tonumber(t[2])
  return seconds * 1000 + math.floor(micros / 1000), seconds % 100000 * 1000000 + micros
end
