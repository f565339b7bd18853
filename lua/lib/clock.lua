-- The server's clock, read once per call: the only wall clock there is.
-- Milliseconds since the epoch, and a stamp in microseconds that comes round every 28 hours.
function clock.read()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000), t[1] % 100000 * 1000000 + t[2]
end
