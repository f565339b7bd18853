-- A unit of work: one call on one queue, its time, and what it gathers to write once at the end. Every function opens
-- one first, and one that writes closes it last.
local function write(unit, call)
  moves.write(unit, call)
  history.write(unit, call)
  stats.write(unit, call)
  events.write(unit, call)
  wake.write(unit, call)
end

-- Write what was gathered: fast, and after an error with care from where that happened.
local function close(unit)
  if not pcall(write, unit, unit.raw) then
    write(unit, unit.call)
  end
end

function unit.open(root)
  local now_ms, now_text, generation = clock.read()
  return {
    call = damage.call, -- what fails because of strange data is mended and repeated
    raw = redis.call, -- for keys whose type the call has seen, and for close()
    try = redis.pcall, -- where an error is looked at on the spot
    close = close,
    root = root,
    now_ms = now_ms,
    now_text = now_text,
    -- A number that no other call of this queue has, short of a stepped clock: entries left behind by cancelled jobs
    -- don't match, and one that did would only let its job run from another place in line.
    generation = generation,
    settings = false, -- here what comes later has its place, or the table would grow for it
    new_head = false,
    counts = false, -- a table is made with the first that goes into it: to grow costs 1,000 instructions
    stats = false,
    queued = false, -- how many there are now, once their count was written
    heads = false, -- entries for the heads of lines, by line
    tails = false,
    undelayed = false, -- members that leave the delayed ones
    joined = false, -- ids that `joiner` has claimed
    joiner = '',
    left = false, -- ids that are no longer an incarnation's, by incarnation
    finished = false, -- times and ids of ended jobs
    dead = false,
    events = false,
    event_count = 0, -- what # costs grows with the list, to 1,000 instructions
    event_first = 1, -- the first of them that is not written
    entries = false, -- events that are joined already
    total = false, -- of events, before these
    is_new_bucket = false,
    turns = 0, -- numbers of jobs that got a place of their own in the order of their creation or change
    wakes = false, -- lanes that are to get a wake-up token
    -- Few calls have any of these, for which the table grows: `ordered` are numbers and entries for lines that have
    -- these, by line; `number` and `last_number` the last that was given out, and that up to which the call has them;
    -- `terms` those of limits, by name, `lacking` the gates that were met without any, by their limits; `gates` gates
    -- by name, `gate_names` these in the order in which they came up; `has_new_due` says that a gate is due at another
    -- time, `has_made_way` that those are woken who may start, `turns_over` are the gates of keys whose next turn is
    -- free, in the order in which that came, `unblocked` ids that leave the blocked ones, `struck` are the strikes that
    -- claims meet, by their tasks.
  }
end
