-- The keys of a queue, each below the queue's root. No other file builds one.
function keys.job(root, id) return root .. ':job:' .. id end
function keys.payload(root, id) return root .. ':payload:' .. id end
function keys.result(root, id) return root .. ':result:' .. id end
function keys.errors(root, id) return root .. ':errors:' .. id end
function keys.output(root, id) return root .. ':output:' .. id end
function keys.next(root, id) return root .. ':next:' .. id end

-- A line is <lane>:<tier>.
function keys.ready(root, line) return root .. ':ready:' .. line end
-- The same of a queue with limits, where each entry has a number.
function keys.ordered(root, line) return root .. ':ordered:' .. line end
function keys.delayed(root) return root .. ':delayed' end
function keys.blocked(root) return root .. ':blocked' end
function keys.finished(root) return root .. ':finished' end
function keys.dead(root) return root .. ':dead' end
function keys.counts(root) return root .. ':counts' end

function keys.limits(root) return root .. ':limits' end
-- A gate's name is <limit>, a tab, <key>. Those that have a line are in `lines`, those that are due in `gates`.
function keys.gate(root, name) return root .. ':gate:' .. name end
function keys.line(root, name) return root .. ':line:' .. name end
function keys.lines(root) return root .. ':lines' end
-- What a recount of gates has found up to now, by gate.
function keys.tally(root) return root .. ':tally' end
function keys.gates(root) return root .. ':gates' end

-- Strikes by id, and by its task the one that claims meet.
function keys.strikes(root) return root .. ':strikes' end
function keys.struck(root) return root .. ':struck' end

function keys.beats(root) return root .. ':beats' end
function keys.worker(root, incarnation) return root .. ':worker:' .. incarnation end
function keys.processing(root, incarnation) return root .. ':processing:' .. incarnation end
function keys.cancels(root, incarnation) return root .. ':cancels:' .. incarnation end

function keys.wake(root, lane) return root .. ':wake:' .. lane end
function keys.woken(root) return root .. ':woken' end
function keys.events(root) return root .. ':events' end
function keys.readers(root) return root .. ':readers' end
function keys.stats(root, since_ms) return root .. ':stats:' .. since_ms end

function keys.config(root) return root .. ':config' end
function keys.lanes(root) return root .. ':lanes' end
function keys.calls(root, client, slot) return root .. ':calls:' .. client .. ':' .. slot end
function keys.walk(root) return root .. ':walk' end
-- The id of the first job with a caller's key.
function keys.idempotent(root, key) return root .. ':idempotent:' .. key end
function keys.fired(root, period) return root .. ':fired:' .. period end

-- A stage's name is <token>:<write id>.
function keys.stage(root, name) return root .. ':stage:' .. name end
function keys.write(root, id) return root .. ':write:' .. id end
function keys.committed(root) return root .. ':committed' end

-- The keys of a tenant's schedules, each below the tenant's root.
function keys.schedule(root, id) return root .. ':schedule:' .. id end
function keys.schedule_history(root, id) return root .. ':schedule-history:' .. id end
function keys.schedules(root) return root .. ':schedules' end
function keys.schedules_of(root, app) return root .. ':schedules-of:' .. app end
function keys.schedules_due(root) return root .. ':schedules-due' end
function keys.schedules_heard(root) return root .. ':schedules-heard' end
function keys.schedule_releases(root, app) return root .. ':schedule-releases:' .. app end

-- Those of both.
function keys.damaged(root) return root .. ':damaged' end

-- Where a key of this kind is set aside.
function keys.aside(root, kind) return root .. ':damaged:' .. kind end

-- Return the root and the kind of a key.
function keys.parts(key) return string.match(key, '^(.-}):([%l-]+)') end

-- The same of a queue with limits.
function keys.ordered_words(root, lane)
  local words = { '10' }
  for tier = 9, 0, -1 do
    words[#words + 1] = keys.ordered(root, lane .. ':' .. tier)
  end
  words[#words + 1], words[#words + 2], words[#words + 3] = 'MIN', 'COUNT', ''
  return words
end

-- The words of a pop from the best tier of a lane that has any entry, but for the last: how many.
function keys.pop_words(root, lane)
  local ready = root .. ':ready:' .. lane .. ':'
  return {
    '10', ready .. '9', ready .. '8', ready .. '7', ready .. '6', ready .. '5', ready .. '4', ready .. '3',
    ready .. '2', ready .. '1', ready .. '0', 'LEFT', 'COUNT', '',
  }
end
