-- Token buckets in whole numbers: what lacks to a full one is owed, and time pays it. A token is worth the rate_ms of
-- its terms, and each millisecond pays their rate, so that nothing is rounded. A bucket is part of its gate.

-- Make a gate's bucket a full one by its terms.
function bucket.fill(gate)
  local its = gate.terms
  gate.owed, gate.rate, gate.rate_ms, gate.burst = 0, its and its.rate or 0, its and its.rate_ms or 0,
    its and its.burst or 0
end

-- Let so many ms pay what was owed by another rate, or this one: tokens that were taken stay taken, and a part of a
-- token counts as a whole one where the rate is another.
function bucket.pay(gate, owed, rate, rate_ms, ms)
  bucket.fill(gate)
  if gate.rate == 0 or rate == 0 then
    return
  end
  owed = math.max(0, owed - math.max(0, ms) * rate)
  if rate ~= gate.rate or rate_ms ~= gate.rate_ms then
    owed = math.ceil(owed / rate_ms) * gate.rate_ms
  end
  gate.owed = math.min(owed, gate.burst * gate.rate_ms)
end

-- How many starts it allows now.
function bucket.tokens(gate)
  return gate.rate ~= 0 and gate.burst - math.ceil(gate.owed / gate.rate_ms) or 0
end

function bucket.take(gate)
  gate.owed = gate.owed + gate.rate_ms
end

-- How long until there are so many tokens; nil: there never are.
function bucket.ms_until(gate, tokens)
  if tokens > gate.burst then
    return nil
  end
  return math.max(0, math.ceil((gate.owed - (gate.burst - tokens) * gate.rate_ms) / gate.rate))
end
