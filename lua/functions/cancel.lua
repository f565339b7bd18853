-- End waiting jobs and ask active ones to stop, or end successors alone; with states, only what is in one of them.
-- Reply: a verdict an id. An unknown id leaves no trace.
local VERDICTS = { cancelled = 'cancelled', completed = 'finished', failed = 'finished' }

local function ask_to_stop(unit, job)
  moves.ask_to_stop(unit, job)
  -- Its worker beats at once when it hears of this, and the answer says which jobs.
  local channel = unit.call('HGET', keys.worker(unit.root, record.owner(job)), 'channel')
  if channel and channel ~= '' then
    wake.publish(unit, channel, table.concat({ unit.root, job.id, 'active', '', 'none', '' }, '\n'))
  end
end

local function cancel_next(unit, id)
  return finish.cancel_next(unit, id) and 'cancelled' or 'not_found'
end

-- What follows an active job is blocked, whatever that one is.
local function spare(unit, job, states)
  return job.has_next and states.blocked and cancel_next(unit, job.id) or 'not_found'
end

local function cancel(unit, id, states)
  local job = record.load_waiting(unit, id)
  if not job then
    return 'not_found'
  elseif VERDICTS[job.state] then
    return VERDICTS[job.state]
  elseif states and not states[job.state] then
    return spare(unit, job, states)
  elseif job.state == 'active' then
    ask_to_stop(unit, job)
    if job.has_next then
      finish.cancel_next(unit, id)
    end
    return 'requested'
  end
  finish.cancel(unit, job, '', '')
  return 'cancelled'
end

-- A set of the states that a word names, nil where it names none.
local function states_of(word)
  local states = word ~= '' and {} or nil
  for state in string.gmatch(word, '%l+') do
    states[state] = true
  end
  return states
end

function functions.cancel(roots, args)
  local unit = unit.open(roots[1])
  local cancel_one, states = args[1] == '1' and cancel_next or cancel, states_of(args[2])
  local verdicts = {}
  for i = 3, #args do
    verdicts[i - 2] = cancel_one(unit, args[i], states)
  end
  lines.close(unit)
  return verdicts
end
