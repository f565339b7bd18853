-- Turns: fairness between keys. The window of a key in a lane and tier is a gate with room for one job that is ready,
-- however many are active; who comes in joins the tail. So keys take turns, and no other key is looked at for it.
local FAIR = limits.FAIR_LIMIT
local PREFIX, IN_LINES = FAIR .. ':', '\n' .. FAIR .. ':'

local WINDOW = { concurrency = 0, rate = 0, rate_ms = 0, burst = 0, is_window = true }

-- What a limit that a job of a lane and tier asks for is called among its gates.
function turns.limit(limit, lane, tier)
  return limit == FAIR and PREFIX .. lane .. ':' .. tier or limit
end

-- The terms of a limit, or of a gate of it, that is a window; nil of any other.
function turns.terms(name)
  return string.sub(name, 1, #PREFIX) == PREFIX and WINDOW or nil
end

-- Whether a job that meets these gates takes turns.
function turns.are_among(names)
  return string.find('\n' .. names, IN_LINES, 1, true) ~= nil
end
