-- How a job is born, or makes room for one of its id. Nothing here gives it a place.
local DEFAULT_LANE, DEFAULT_TIER, INLINE_LIMIT = record.DEFAULT_LANE, record.DEFAULT_TIER, record.INLINE_LIMIT

-- The keys of new jobs, whose ids are each `step`th word from `first` to `last`; nil where a key is there, or an id is
-- said twice. It takes a third of what a look at each record would.
function intake.free_keys(unit, words, first, last, step)
  local root, known, names, n = unit.root, {}, {}, 0
  for i = first, last, step do
    local key = keys.job(root, words[i])
    if known[key] then
      return nil
    end
    n = n + 1
    known[key], names[n] = true, key
  end
  return unit.raw('EXISTS', unpack(names)) == 0 and names or nil
end

-- Let a new job have the id of one that has ended in a state.
function intake.make_room(unit, id, state)
  history.remove(unit, state, id)
  record.erase(unit, id)
end

-- A job that is there with the same id: its verdict, nil when it made room for a new one, which one never does that
-- `stays`. `channel` hears of its end.
function intake.standing(unit, key, id, channel, stays)
  local head = unit.call('HGET', key, 'head')
  local state = record.state(head)
  if state == 'failed' or state == 'cancelled' then
    if stays then
      return 'duplicate'
    end
    intake.make_room(unit, id, state)
    return nil
  elseif not state then
    if head then -- rubbish
      damage.note(unit.root, 'job')
      record.erase(unit, id)
    end
    return nil
  elseif state == 'completed' then
    return 'completed'
  end
  if channel ~= '' then
    record.add_channel(unit, { key = key, head = head, channels = unit.call('HGET', key, 'channels') }, channel)
    unit.call('HSET', key, 'joined', '1')
  end
  return 'duplicate'
end

-- A producer that doesn't know the task leaves the lane to what workers have said of it.
function intake.lane(unit, lane, task)
  if lane ~= '' then
    return lane
  end
  return record.lane_name(unit.call('HGET', keys.lanes(unit.root), task)) or DEFAULT_LANE
end

-- Return a new job, and the fields of its record, which are written with its head when it gets a place. `few` are those
-- that few jobs have; what is not said takes the default and no space.
function intake.new(unit, key, id, task, payload, lane, tier, few)
  local job = {
    key = key, id = id, is_new = true, task = task, lane = intake.lane(unit, lane, task), tier = tier, big = '',
    more = '', generation = '', created_ms = unit.now_text, run_ms = '', epoch = '0', owner = '', state = '',
  }
  local n = #few
  if job.lane ~= DEFAULT_LANE then
    few[n + 1], few[n + 2] = 'lane', job.lane
    n = n + 2
  end
  if n > 0 then
    record.with_more(job)
  end
  few[n + 1], few[n + 2] = 'task', task
  if #payload > INLINE_LIMIT then
    unit.call('SET', keys.payload(unit.root, id), payload)
    job.big = '*'
  else
    few[n + 3], few[n + 4] = 'payload', payload
  end
  if tier ~= DEFAULT_TIER then
    few[#few + 1], few[#few + 2] = 'tier', tier
  end
  return job, few
end
