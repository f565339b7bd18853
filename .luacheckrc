-- Every file is joined into one library: the shared tables are its locals, and look global from here.
std = 'lua51'
globals = {
  'keys', 'clock', 'numbers', 'damage', 'settings', 'counts', 'record', 'events', 'stats', 'wake', 'history', 'intake',
  'moves', 'unit', 'plain', 'idempotency', 'batch', 'fail_jobs', 'finish', 'attempts', 'outcomes', 'due', 'recounts', 'starts',
  'incarnations', 'pages', 'walk', 'schedules', 'releases', 'reading', 'staged', 'readers', 'updates', 'successors',
  'turns', 'terms', 'bucket', 'strikes', 'gates', 'parking', 'entries', 'lines', 'slots', 'aging', 'before',
  'holders', 'functions',
}
read_globals = { 'limits', 'redis', 'cmsgpack' }
max_line_length = 120
