-- The twin of Item.apply (src/trinco/leases/item.py) inside a Redis server: one access, one round trip, all or nothing.
--
-- KEYS[1]  the item, never deleted: as msgpack, one after the other, the format, the token and its evidence, the six
--          fields of the holder (nil where nobody holds) and how many wait. Not a map: its names would have to be read
--          and written every time. Beside it, while somebody waits, KEYS[1]:line has the owners by their tickets, and
--          KEYS[1]:waiters what each of them asked for: of a long line, a call reads no more than it needs.
-- KEYS[2]  trinco:epoch, with the life that was left there first (redis_epoch.py)
-- ARGV     the life that the link knows, operation, owner, attempt, and then
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
-- Nothing is given by a server whose life is another than when the link was made, since it may have forgotten: it may
-- have been a replica meanwhile, and become a primary again, without any connection being dropped.
--
-- Nothing is written before everything is decided, so an error changes nothing; and nobody is told of what is not
-- written.

if redis.replicate_commands then redis.replicate_commands() end -- a Redis 6 that replicates scripts forbids TIME

local FORMAT = 3
local WITH_LIST = 2 -- of waiters in the item itself, who are forgotten: they are back with their tickets at their next poll
local MOST_WAITERS = 1024
local AHEAD = 3600 * 1000000 -- how far beyond our clock a token is believed
local EXACT = 9007199254740992 -- 2^53: below, every whole number is exact
local ADDRESS_DIGITS = 20

local life, operation, owner, attempt = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if operation ~= 'release' and operation ~= 'yield' and operation ~= 'read' then
  local left = redis.pcall('GET', KEYS[2])
  if type(left) == 'table' then return left end
  if not left or string.sub(left, 1, #life + 1) ~= life .. ' ' then return redis.error_reply('FORGOTTEN ' .. KEYS[2]) end
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local read, format, last_token, evidence, holder, held_attempt, held_until, held_ticket, held_token, held_entry, waiting
local more
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'table' and not string.find(stored.err, 'WRONGTYPE') then return stored end
if stored then
  read, format, last_token, evidence, holder, held_attempt, held_until, held_ticket, held_token, held_entry, waiting,
    more = pcall(cmsgpack.unpack, stored)
end

-- A free lock that nobody waits for is taken, and given back: most of what we are asked. The rest of this file would do
-- the same and take half as long again, since its functions are made anew at every call. What is damaged is left to it.

if read and format == FORMAT and type(last_token) == 'number' and last_token >= 0 and last_token < EXACT
  and (evidence == nil or type(evidence) == 'string') and waiting == 0 and more == nil then
  if operation == 'request' and holder == nil then
    local token, ends = ARGV[6] == 'next' and math.max(last_token + 1, now) or tonumber(ARGV[6]), now + ARGV[5]
    if token and token > last_token and token < EXACT and (ARGV[6] == 'next' or token <= now + AHEAD) then
      local done = redis.pcall('SET', KEYS[1], cmsgpack.pack(FORMAT, token, ARGV[7], owner, attempt, ends, nil, token,
        ARGV[7], 0))
      return done.err and done or 'committed ' .. time[1] .. ' ' .. time[2] .. string.format(' %.0f ', token) .. ARGV[5]
    end
  elseif operation == 'release' and holder == owner and held_attempt == attempt and type(held_until) == 'number'
    and held_until > now and held_until < EXACT then
    local done = redis.pcall('SET', KEYS[1], cmsgpack.pack(FORMAT, last_token, evidence, nil, nil, nil, nil, nil, nil,
      0))
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

local function damaged(key) error('DAMAGED ' .. key, 0) end

local function check_item()
  if format == WITH_LIST and type(waiting) == 'table' then format, waiting = FORMAT, 0 end
  if not (read and format == FORMAT and is_whole(last_token) and is_text_or_nil(evidence)
    and (holder == nil or is_claim(holder, held_attempt, held_until, held_ticket, held_entry))
    and (held_token == nil or is_whole(held_token)) and is_whole(waiting) and more == nil) then damaged(KEYS[1]) end
end

-- The line. What has run out is passed over when it is met. Who leaves, and who comes, is written with the item.

local LINE, WAITERS = KEYS[1] .. ':line', KEYS[1] .. ':waiters'
local AT_ONCE = 4 -- of the line are looked at together
local known, gone, come = {}, {}, nil

local function asked(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if string.find(reply.err, 'WRONGTYPE') then damaged(key) end
  error(reply.err, 0)
end

local function waiter(name) -- nil if it does not wait
  if gone[name] then return nil end
  if known[name] then return known[name] end
  local packed = asked('HGET', WAITERS, name)
  if not packed then return nil end
  local whole, number, ends, ticket, entry, serial, ttl, token, rest = pcall(cmsgpack.unpack, packed)
  if not (whole and ticket and is_claim(name, number, ends, ticket, entry) and rest == nil
    and (serial == nil or (is_whole(serial) and is_whole(ttl) and type(token) == 'string'))) then damaged(WAITERS) end
  if ends <= now then
    gone[name] = true
    return nil
  end
  known[name] = {owner = name, attempt = number, ends = ends, ticket = ticket, entry = entry, serial = serial,
    ttl = ttl, token = token}
  return known[name]
end

local function in_line(from) return asked('ZRANGE', LINE, from, from + AT_ONCE - 1) end

local function from_the_end(from) return asked('ZREVRANGE', LINE, from, from + AT_ONCE - 1) end

local function with_ticket(ticket)
  local words = string.format('%.0f', ticket)
  return function(from) return asked('ZRANGEBYSCORE', LINE, words, words, 'LIMIT', from, AT_ONCE) end
end

local function each(those) -- of these who waits, but who comes
  local from, names, place = 0, {}, 0
  return function()
    while true do
      place = place + 1
      if place > #names then
        if from > 0 and #names < AT_ONCE then return nil end
        names, place = those(from), 1
        from = from + AT_ONCE
        if not names[1] then return nil end
      end
      if not (come and come.owner == names[place]) then
        local found = waiter(names[place])
        if found then return found end
        gone[names[place]] = true
      end
    end
  end
end

local function is_smaller(name, ticket, than) -- equal tickets by their owners' bytes: Lua's own < follows the locale
  if ticket ~= than then return ticket < than end
  for position = 1, math.min(#name, #owner) do
    local left, right = string.byte(name, position), string.byte(owner, position)
    if left ~= right then return left < right end
  end
  return #name < #owner
end

local function first_of(those, but)
  for one in each(those) do
    if one.owner ~= but then return one end
  end
end

local function first_but(name)
  local found = first_of(in_line, name)
  local is_before = come and come.owner ~= name and not (found and is_smaller(found.owner, found.ticket, come.ticket))
  return is_before and come or found
end

local function leave(name)
  known[name], gone[name] = nil, true
  if come and come.owner == name then come = nil end
end

-- When there are too many, the largest ticket goes. Whoever has run out counts until it is met.
local function add_waiter(ticket, wait, entry, serial, ttl, token)
  local is_there = waiter(owner) ~= nil
  come = {owner = owner, attempt = attempt, ends = now + wait, ticket = ticket, entry = entry, serial = serial,
    ttl = ttl, token = token}
  local many = asked('ZCARD', LINE)
  if is_there or many < MOST_WAITERS then return end
  local last = first_of(from_the_end, owner)
  for _ in pairs(gone) do many = many - 1 end
  if many >= MOST_WAITERS then leave(is_smaller(last.owner, last.ticket, ticket) and owner or last.owner) end
end

local function write_line()
  for name in pairs(gone) do
    redis.call('ZREM', LINE, name)
    redis.call('HDEL', WAITERS, name)
  end
  if come then
    redis.call('ZADD', LINE, string.format('%.0f', come.ticket), come.owner)
    redis.call('HSET', WAITERS, come.owner, cmsgpack.pack(come.attempt, come.ends, come.ticket, come.entry, come.serial,
      come.ttl, come.token))
    known[come.owner] = come
  end
  gone, come = {}, nil
end

-- Ends

local function told(grade) return grade .. ' ' .. time[1] .. ' ' .. time[2] end

local function answer(grade, token, remaining, smaller, proof, ticket)
  local line = told(grade) .. (token and string.format(' %.0f %.0f', token, remaining)
    or string.format(' - %.0f', remaining))
  if not (smaller or proof or ticket) then return line end
  return line .. (smaller and ' 1 ' or ' 0 ') .. (proof and #proof or '-') .. ' ' .. (ticket and #ticket or '-')
    .. '\n' .. (proof or '') .. (ticket or '')
end

local function written(reply)
  write_line()
  redis.call('SET', KEYS[1], cmsgpack.pack(FORMAT, last_token, evidence, holder, held_attempt, held_until, held_ticket,
    held_token, held_entry, redis.call('ZCARD', LINE)))
  return reply
end

local function let_go()
  holder, held_attempt, held_until, held_ticket, held_token, held_entry = nil, nil, nil, nil, nil, nil
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

-- Whoever is next

local function channel(name) -- nil for a name of another form: nothing can be said to it, and its silence proves nothing
  local address = string.sub(string.match(name, '([^/]*)$'), 1, ADDRESS_DIGITS)
  if #address < ADDRESS_DIGITS or string.find(address, '[^0-9a-f]') then return nil end
  return 'trinco:wake:' .. address
end

local function ring(name, words) -- whether somebody may have heard it
  local where = channel(name)
  return not where or redis.pcall('PUBLISH', where, words or name) ~= 0
end

local function is_passed_on(first) -- whether it is the first in line's now, who knows
  leave(first.owner)
  holder, held_attempt, held_until, held_ticket = first.owner, first.attempt, now + first.ttl, first.ticket
  held_token, held_entry = nil, first.entry
  local grade, proof = granted(first.token, first.entry)
  written()
  local token = held_token and string.format('%.0f', held_token) or '-'
  local numbers = string.format('%.0f %.0f %.0f', first.attempt, first.serial, held_until - first.ends)
  local words = '\0' .. numbers .. ' ' .. grade .. ' ' .. token .. ' ' .. #first.owner .. (proof and ' +\n' or ' -\n')
    .. first.owner
  if ring(first.owner, words .. (proof or '')) then return true end
  let_go()
  return false
end

local function passed_on(reply, is_changed) -- and the first in line has it, or is woken, if nobody holds
  local first = not holder and first_but(nil)
  while first do
    if first.serial and channel(first.owner) then
      if is_passed_on(first) then return reply end
    elseif ring(first.owner) then
      break
    else
      leave(first.owner)
    end
    is_changed = true
    first = first_but(nil)
  end
  return is_changed and written(reply) or reply
end

-- The operations

local function released() -- exactly this claim, holding or waiting
  local mine, is_changed = waiter(owner), holder == owner and held_attempt == attempt
  if is_changed then let_go() end
  if mine and mine.attempt == attempt then
    leave(owner)
    is_changed = true
  end
  return passed_on(told(is_changed and 'done' or 'gone'), is_changed)
end

local function extended(ttl)
  if holder ~= owner or held_attempt ~= attempt then
    return holder and answer('gone', nil, held_until - now) or told('gone')
  end
  held_until = math.max(held_until, now + ttl)
  return written(answer('committed', held_token, held_until - now))
end

local function whole()
  local reply = {'item', now, last_token, evidence or false, holder and 1 or 0}
  local function tell(...)
    for place = 1, select('#', ...) do reply[#reply + 1] = select(place, ...) or false end
  end
  if holder then tell(holder, held_attempt, held_until, held_ticket, held_token, held_entry) end
  for one in each(in_line) do tell(one.owner, one.attempt, one.ends, one.ticket, one.entry) end
  return reply
end

local function has_smaller(ticket)
  local first = first_but(owner)
  return first ~= nil and (ticket == nil or is_smaller(first.owner, first.ticket, ticket))
end

local function knows_later()
  if holder == owner and held_attempt > attempt then return true end
  local mine = waiter(owner)
  return mine ~= nil and mine.attempt > attempt
end

local function committed(token, entry)
  if holder ~= owner or held_attempt ~= attempt then return answer('gone', nil, 0, false, evidence) end
  if held_token == token then return answer('committed', token, 0) end
  if token <= last_token then return answer('refused', nil, 0, false, evidence) end
  commit_token(token, entry)
  return written(answer('committed', token, 0, has_smaller(held_ticket)))
end

local function yielded(ticket, wait, entry)
  local is_mine = holder == owner and held_attempt == attempt
  if is_mine then
    let_go()
    if wait ~= 0 and ticket and not knows_later() then add_waiter(ticket, wait, entry) end
  end
  return passed_on(told(is_mine and 'done' or 'gone'), is_mine)
end

local function largest_entry() -- of the tickets of anybody else: the holder's, or the first in line's of these
  local found = first_of(from_the_end, owner)
  if holder and holder ~= owner and held_ticket and not (found and found.ticket > held_ticket) then return held_entry end
  return found and first_of(with_ticket(found.ticket), owner).entry
end

local function is_cleared(ticket) -- of those before us who died together with whoever held before: whether there were any
  local were_any, first = false, not holder and first_but(nil)
  while first and first.owner ~= owner and (not ticket or is_smaller(first.owner, first.ticket, ticket))
    and not ring(first.owner) do
    leave(first.owner)
    were_any, first = true, first_but(nil)
  end
  return were_any
end

local function requested(ttl, token, entry, ticket, wait, serial)
  local is_changed, is_late = is_cleared(ticket), knows_later()
  local largest = largest_entry()
  if is_late or (holder and holder ~= owner) or (not holder and has_smaller(ticket)) then
    if ticket and wait ~= 0 then
      local mine = waiter(owner)
      local waits_already = mine and mine.attempt == attempt and mine.ticket == ticket
        and not serial and mine.ends - now > wait / 2
      if not (is_late or waits_already) then
        add_waiter(ticket, wait, entry, serial, serial and ttl, serial and token)
        is_changed = true
      end
      if holder and held_ticket and holder ~= owner and not is_smaller(holder, held_ticket, ticket) then
        ring(holder) -- it must yield if it does not hold the whole yet; its silence proves nothing
      end
    end
    local reply = answer('refused', nil, holder and held_until - now or 0, has_smaller(ticket), nil, largest)
    return is_changed and written(reply) or reply
  end
  if holder == owner and held_attempt == attempt then
    held_until = math.max(held_until, now + ttl)
  else
    holder, held_attempt, held_until, held_token = owner, attempt, now + ttl, nil
  end
  held_ticket, held_entry = ticket, entry
  if waiter(owner) then leave(owner) end
  if token == 'next' and not held_token and last_token + 1 >= EXACT then error('EXHAUSTED no token is left', 0) end
  local grade, proof = granted(token, entry)
  return written(answer(grade, held_token, held_until - now, has_smaller(ticket), proof, largest))
end

local function decided()
  if stored then
    check_item()
    if holder and held_until <= now then let_go() end -- a term that ends now is over
  else
    last_token = now -- a token that this server cannot have given out before
  end
  if operation == 'release' then return released() end
  if operation == 'extend' then return extended(tonumber(ARGV[5])) end
  if operation == 'read' then return whole() end
  if operation == 'commit' then return committed(tonumber(ARGV[5]), ARGV[6]) end
  if operation == 'yield' then return yielded(tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]) end
  if operation == 'request' then return requested(tonumber(ARGV[5]), ARGV[6], ARGV[7], nil, 0, nil) end
  if operation ~= 'queue' then error('UNKNOWN operation', 0) end
  return requested(tonumber(ARGV[5]), ARGV[6], ARGV[10], tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]))
end

local is_decided, reply = pcall(decided)
if is_decided or type(reply) == 'table' then return reply end
return redis.error_reply(reply)
