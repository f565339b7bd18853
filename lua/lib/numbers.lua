-- Numbers, and the words that stand for them.
local SMALL = 10000
local small = {} -- text of small numbers, made once

-- Milliseconds do not fit the 14 digits of Lua's own number format, and whole numbers need none of the
-- arithmetic that %.0f does, which costs a tenth of a call.
function numbers.text(number)
  local known = small[number]
  if not known then
    known = string.format('%d', number)
    if number > -SMALL and number < SMALL then
      small[number] = known
    end
  end
  return known
end

-- Text that is a whole number from 0 on which Redis and Lua can work with, else nil.
function numbers.digits(word)
  return word and #word <= 15 and string.match(word, '^%d+$')
end

-- The number that a word says, the default where it says none.
function numbers.read(word, default)
  return tonumber(numbers.digits(word) or default)
end

-- Whether a field that need not be there holds such a number.
function numbers.is_valid(word)
  return not word or numbers.digits(word) ~= nil
end
