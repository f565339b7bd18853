-- The server's clock, read once per call: the only wall clock there is.
function clock.now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
