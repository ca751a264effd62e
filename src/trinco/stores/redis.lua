-- The twin of Item.apply (src/trinco/leases/item.py) inside a Redis server: one access, one round trip, all or nothing.
--
-- KEYS[1]  the item, never deleted: as msgpack, one after the other, the format, the token and its evidence, the six
--          fields of the holder (nil where nobody holds) and the list of waiters. Not a map: its names would have to be
--          read and written every time.
-- ARGV     operation, owner, attempt, and then
--            request  ttl, token, entry                           commit  token, entry
--            queue    ttl, token, ticket, wait, serial, entry     yield   ticket, wait, entry
--            extend   ttl                                         release, read  -
--          A request with a ticket is a queue. Times are microseconds. '' is no ticket, no token or no serial, 'next'
--          is the token after the last, or the clock: a server that has lost its last writes gives none out again; an entry that is not there is not sent.
-- Answers  one string, because a client reads many of them: 'grade seconds microseconds', where the server's clock is
--          the last two; where there is more to tell, ' token remaining' ('-' is no token); and where there is still
--          more, ' smaller evidence ticket\n' and then the two entries: of these the line has the lengths, or '-'.
--          To read: {'item', now, token, evidence, holders, six fields of the holder, five of each waiter}.
--
-- What is let go of is handed over to the first in line, whose request stands if it has a serial; a waiter without one
-- is woken and asks. Either is published to the address in the owner's name: to be woken is that name; to be handed
-- over is a zero byte, 'attempt serial beyond grade token length evidence\n', the name, which is so long, and the
-- evidence where that is '+', which it may be for a tentative grant. Nobody there to hear it means that the waiter's
-- process is gone: it is dropped, and the next one is told.
--
-- Nothing is written before everything is decided, so an error changes nothing; and nobody is told of what is not
-- written.

if redis.replicate_commands then redis.replicate_commands() end -- a Redis 6 that replicates scripts forbids TIME

local FORMAT = 2
local MOST_WAITERS = 1024
local AHEAD = 3600 * 1000000 -- how far beyond our clock a token is believed
local EXACT = 9007199254740992 -- 2^53: below, every whole number is exact
local ADDRESS_DIGITS = 20

local operation, owner, attempt = ARGV[1], ARGV[2], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local read, format, last_token, evidence, holder, held_attempt, held_until, held_ticket, held_token, held_entry, waiters
local more
local stored = redis.pcall('GET', KEYS[1])
if stored then
  read, format, last_token, evidence, holder, held_attempt, held_until, held_ticket, held_token, held_entry, waiters,
    more = pcall(cmsgpack.unpack, stored)
end

-- A free lock that nobody waits for is taken, and given back: most of what we are asked. The rest of this file would do
-- the same and take half as long again, since its functions are made anew at every call. What is damaged is left to it.

if read and format == FORMAT and type(last_token) == 'number' and last_token >= 0 and last_token < EXACT
  and (evidence == nil or type(evidence) == 'string') and type(waiters) == 'table' and next(waiters) == nil
  and more == nil then
  if operation == 'request' and holder == nil then
    local token, ends = ARGV[5] == 'next' and math.max(last_token + 1, now) or tonumber(ARGV[5]), now + ARGV[4]
    if token and token > last_token and token < EXACT and (ARGV[5] == 'next' or token <= now + AHEAD) then
      local done = redis.pcall('SET', KEYS[1], cmsgpack.pack(FORMAT, token, ARGV[6], owner, attempt, ends, nil, token,
        ARGV[6], waiters))
      return done.err and done or 'committed ' .. time[1] .. ' ' .. time[2] .. string.format(' %.0f ', token) .. ARGV[4]
    end
  elseif operation == 'release' and holder == owner and held_attempt == attempt and type(held_until) == 'number'
    and held_until > now and held_until < EXACT then
    local done = redis.pcall('SET', KEYS[1], cmsgpack.pack(FORMAT, last_token, evidence, nil, nil, nil, nil, nil, nil,
      waiters))
    return done.err and done or 'done ' .. time[1] .. ' ' .. time[2]
  end
end

-- What is stored. Damaged, or not ours: then nothing is known, and nothing is granted.

local function is_whole(value) return type(value) == 'number' and value >= 0 and value < EXACT end

local function is_text_or_nil(value) return value == nil or type(value) == 'string' end

local function is_claim(name, number, ends, ticket, entry)
  return type(name) == 'string' and is_whole(number) and is_whole(ends) and (ticket == nil or is_whole(ticket))
    and is_text_or_nil(entry)
end

local function are_waiters(value)
  if type(value) ~= 'table' or (#value == 0 and next(value) ~= nil) then return false end
  for place = 1, #value do
    local each = value[place]
    if type(each) ~= 'table' or each.ticket == nil then return false end
    if not is_claim(each.owner, each.attempt, each.ends, each.ticket, each.entry) then return false end
    if each.serial ~= nil and not (is_whole(each.serial) and is_whole(each.ttl) and type(each.token) == 'string') then
      return false
    end
  end
  return true
end

if not stored then
  last_token, waiters = now, {} -- a token that this server cannot have given out before
elseif not (read and format == FORMAT and is_whole(last_token) and is_text_or_nil(evidence)
  and (holder == nil or is_claim(holder, held_attempt, held_until, held_ticket, held_entry))
  and (held_token == nil or is_whole(held_token)) and are_waiters(waiters) and more == nil) then
  return redis.error_reply('DAMAGED ' .. KEYS[1])
end

-- Without what has run out. A term that ends now is over.

local function let_go()
  holder, held_attempt, held_until, held_ticket, held_token, held_entry = nil, nil, nil, nil, nil, nil
end

local function kept(is_kept) -- the waiters of whom this is true
  local those = {}
  for place = 1, #waiters do
    if is_kept(waiters[place]) then those[#those + 1] = waiters[place] end
  end
  return those
end

if holder and held_until <= now then let_go() end
if waiters[1] then waiters = kept(function(each) return each.ends > now end) end
local is_mine = holder == owner and held_attempt == attempt

-- Ends

local function told(grade) return grade .. ' ' .. time[1] .. ' ' .. time[2] end

local function answer(grade, token, remaining, smaller, proof, ticket)
  local line = told(grade) .. (token and string.format(' %.0f %.0f', token, remaining)
    or string.format(' - %.0f', remaining))
  if not (smaller or proof or ticket) then return line end
  return line .. (smaller and ' 1 ' or ' 0 ') .. (proof and #proof or '-') .. ' ' .. (ticket and #ticket or '-')
    .. '\n' .. (proof or '') .. (ticket or '')
end

local function channel(name) -- nil for a name of another form: nothing can be said to it, and its silence proves nothing
  local address = string.sub(string.match(name, '([^/]*)$'), 1, ADDRESS_DIGITS)
  if #address < ADDRESS_DIGITS or string.find(address, '[^0-9a-f]') then return nil end
  return 'trinco:wake:' .. address
end

local function ring(name, words) -- whether somebody may have heard it
  local where = channel(name)
  return not where or redis.pcall('PUBLISH', where, words or name) ~= 0
end

local function written(reply)
  local done = redis.pcall('SET', KEYS[1], cmsgpack.pack(FORMAT, last_token, evidence, holder, held_attempt, held_until,
    held_ticket, held_token, held_entry, waiters))
  return done.err and done or reply
end

local function commit_token(token, entry) held_token, last_token, evidence = token, token, entry end

local function granted(token, entry) -- what a grant does to the token; the grade, and the evidence if it is tentative
  if token == '' or held_token then return 'committed', nil end
  local number = token == 'next' and math.max(last_token + 1, now) or tonumber(token)
  if number < EXACT and (token == 'next' or (number > last_token and number <= now + AHEAD)) then
    commit_token(number, entry)
    return 'committed', nil
  end
  return 'tentative', evidence
end

local function is_passed_on(first) -- whether it is the first in line's now, who knows; nil and why if that failed
  table.remove(waiters, 1)
  holder, held_attempt, held_until, held_ticket = first.owner, first.attempt, now + first.ttl, first.ticket
  held_token, held_entry = nil, first.entry
  local grade, proof = granted(first.token, first.entry)
  local done = written(true)
  if done ~= true then return nil, done end
  local token = held_token and string.format('%.0f', held_token) or '-'
  local numbers = string.format('%.0f %.0f %.0f', first.attempt, first.serial, held_until - first.ends)
  local words = '\0' .. numbers .. ' ' .. grade .. ' ' .. token .. ' ' .. #first.owner .. (proof and ' +\n' or ' -\n')
    .. first.owner
  if ring(first.owner, words .. (proof or '')) then return true end
  let_go()
  return false
end

local function passed_on(reply, is_changed) -- and the first in line has it, or is woken, if nobody holds
  while not holder and waiters[1] do
    if waiters[1].serial and channel(waiters[1].owner) then
      local done, problem = is_passed_on(waiters[1])
      if problem then return problem end
      if done then return reply end
    elseif ring(waiters[1].owner) then
      break
    else
      table.remove(waiters, 1)
    end
    is_changed = true
  end
  return is_changed and written(reply) or reply
end

-- The operations: first those that need nothing more

if operation == 'release' then -- exactly this claim, holding or waiting
  local is_changed = is_mine
  if is_mine then let_go() end
  if waiters[1] then
    local others = kept(function(each) return each.owner ~= owner or each.attempt ~= attempt end)
    is_changed = is_changed or #others < #waiters
    waiters = others
  end
  return passed_on(told(is_changed and 'done' or 'gone'), is_changed)
end

if operation == 'extend' then
  if not is_mine then return holder and answer('gone', nil, held_until - now) or told('gone') end
  held_until = math.max(held_until, now + tonumber(ARGV[4]))
  return written(answer('committed', held_token, held_until - now))
end

if operation == 'read' then
  local reply = {'item', now, last_token, evidence or false, holder and 1 or 0}
  local function tell(...)
    for place = 1, select('#', ...) do reply[#reply + 1] = select(place, ...) or false end
  end
  if holder then tell(holder, held_attempt, held_until, held_ticket, held_token, held_entry) end
  for _, each in ipairs(waiters) do tell(each.owner, each.attempt, each.ends, each.ticket, each.entry) end
  return reply
end

-- What the others need

local function is_smaller(name, ticket, than) -- equal tickets by their owners' bytes: Lua's own < follows the locale
  if ticket ~= than then return ticket < than end
  for position = 1, math.min(#name, #owner) do
    local left, right = string.byte(name, position), string.byte(owner, position)
    if left ~= right then return left < right end
  end
  return #name < #owner
end

local function has_smaller(ticket)
  for place = 1, #waiters do
    local each = waiters[place]
    if each.owner ~= owner and (ticket == nil or is_smaller(each.owner, each.ticket, ticket)) then return true end
  end
  return false
end

local function knows_later()
  if holder == owner and held_attempt > attempt then return true end
  for place = 1, #waiters do
    if waiters[place].owner == owner and waiters[place].attempt > attempt then return true end
  end
  return false
end

local function is_another(each) return each.owner ~= owner end

local function add_waiter(ticket, wait, entry, serial, ttl, token) -- when there are too many, the largest ticket goes
  local others, place = kept(is_another), 1
  while others[place] and is_smaller(others[place].owner, others[place].ticket, ticket) do place = place + 1 end
  table.insert(others, place, {owner = owner, attempt = attempt, ends = now + wait, ticket = ticket, entry = entry,
    serial = serial, ttl = ttl, token = token})
  if #others > MOST_WAITERS then table.remove(others) end
  waiters = others
end

if operation == 'commit' then
  local token = tonumber(ARGV[4])
  if not is_mine then return answer('gone', nil, 0, false, evidence) end
  if held_token == token then return answer('committed', token, 0) end
  if token <= last_token then return answer('refused', nil, 0, false, evidence) end
  commit_token(token, ARGV[5])
  return written(answer('committed', token, 0, has_smaller(held_ticket)))
end

if operation == 'yield' then
  local ticket, wait = tonumber(ARGV[4]), tonumber(ARGV[5])
  if is_mine then
    let_go()
    if wait ~= 0 and ticket and not knows_later() then add_waiter(ticket, wait, ARGV[6]) end
  end
  return passed_on(told(is_mine and 'done' or 'gone'), is_mine)
end

local ttl, token, entry, ticket, wait, serial = tonumber(ARGV[4]), ARGV[5], ARGV[6], nil, 0, nil
if operation == 'queue' then
  ticket, wait, serial, entry = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
elseif operation ~= 'request' then
  return redis.error_reply('UNKNOWN operation')
end

local is_changed = false
while not holder and waiters[1] and waiters[1].owner ~= owner
  and (not ticket or is_smaller(waiters[1].owner, waiters[1].ticket, ticket)) and not ring(waiters[1].owner) do
  table.remove(waiters, 1) -- it died together with whoever held before it, and would keep us out until its time is up
  is_changed = true
end

local largest, largest_entry = nil, nil -- of the tickets of anybody else
if holder and holder ~= owner and held_ticket then largest, largest_entry = held_ticket, held_entry end
for place = 1, #waiters do
  local each = waiters[place]
  if each.owner ~= owner and (not largest or each.ticket > largest) then
    largest, largest_entry = each.ticket, each.entry
  end
end

local is_late = knows_later()
if is_late or (holder and holder ~= owner) or (not holder and has_smaller(ticket)) then
  if not ticket or wait == 0 then
    local reply = answer('refused', nil, holder and held_until - now or 0, has_smaller(ticket), nil, largest_entry)
    return is_changed and written(reply) or reply
  end
  local stays_as_it_is = is_late
  for place = 1, #waiters do
    local each = waiters[place]
    if each.owner == owner and each.attempt == attempt and each.ticket == ticket then
      stays_as_it_is = is_late or (not serial and each.ends - now > wait / 2) -- it waits already
    end
  end
  if not stays_as_it_is then add_waiter(ticket, wait, entry, serial, serial and ttl, serial and token) end
  if holder and held_ticket and holder ~= owner and not is_smaller(holder, held_ticket, ticket) then
    ring(holder) -- it must yield if it does not hold the whole yet; its silence proves nothing
  end
  local reply = answer('refused', nil, holder and held_until - now or 0, has_smaller(ticket), nil, largest_entry)
  return stays_as_it_is and not is_changed and reply or written(reply)
end

if is_mine then
  held_until = math.max(held_until, now + ttl)
else
  holder, held_attempt, held_until, held_token = owner, attempt, now + ttl, nil
end
held_ticket, held_entry = ticket, entry
if waiters[1] then waiters = kept(is_another) end
if token == 'next' and not held_token and last_token + 1 >= EXACT then
  return redis.error_reply('EXHAUSTED no token is left')
end
local grade, proof = granted(token, entry)
return written(answer(grade, held_token, held_until - now, has_smaller(ticket), proof, largest_entry))
