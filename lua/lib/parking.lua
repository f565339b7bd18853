-- What a move of a job means to its gates: the places that it gives back, keeps or takes there.

-- Give back what a job that moves holds in its gates, and see where it may go. `number` is its place among those that
-- are ready if it goes there. Return the gate in whose line it has to wait instead; nil: it goes where it is to.
-- A job that was `popped` from the line of a gate was the first there, and has left it.
function parking.line_of(unit, job, number)
  local held = job.gates
  if held and job.state == 'active' and number then
    gates.hold(unit, held)
    return nil
  elseif held and (job.state == 'active' or job.state == 'queued') then
    gates.give_back(unit, held, job.state)
  elseif job.state == 'blocked' and not job.popped then
    gates.part(unit, parking.line(unit, job), job.id)
  end
  job.gates = job.gates_asked
  return number and job.gates and gates.admit(unit, job.gates, job.tier, number, job.popped)
end

-- The gate in whose line a blocked job stands; '' of rubbish.
function parking.line(unit, job)
  job.parked = job.parked or unit.call('HGET', job.key, 'parked') or ''
  return job.parked
end

-- A gate as an event tells of it: its limit and key.
function parking.shown(line)
  return (string.gsub(string.gsub(line, '\t', ' '), ' +$', ''))
end
