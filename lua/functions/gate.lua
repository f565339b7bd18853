-- How one gate stands. Reply: its terms or '', then how many are ready, active and in its line, and its tokens.
function functions.gate(roots, args)
  local unit = unit.open(roots[1])
  local gate = gates.of(unit, args[1])
  local words = { terms.text(unit, terms.limit_of(gate.name)) }
  local waiting = unit.call('ZCARD', keys.line(unit.root, gate.name))
  for _, n in ipairs({ gate.ready, gate.active, waiting, bucket.tokens(gate) }) do
    words[#words + 1] = numbers.text(n)
  end
  return words
end
