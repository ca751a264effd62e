-- The twin of Item.apply (src/trinco/leases/item.py) inside a Redis server: one access, one round trip, all or nothing.
--
-- KEYS[1]  the item: a msgpack map {trinco, token, evidence, holder, waiters}. It is never deleted.
-- ARGV     operation, owner, attempt, and then
--            request  ttl, t_max, ticket, wait, token, entry      commit  token, entry
--            extend   ttl, t_max                                  yield   ticket, wait, entry
--            release  -                                           read    -
--          Times are microseconds. '' is no ticket or no token, 'next' is the token after the last; an entry that is
--          not there is not sent.
-- Answers  one string, 'grade now token remaining smaller evidence ticket\n' and then the two entries: of these the
--          line has the lengths. '-' is what is not there. One string, because a client reads many of them.
--          To read: {'item', now, token, evidence, holders, six fields of the holder, five of each waiter}.
--
-- Where apply names somebody to wake, a hint is published to the address in the owner's name. Nobody there to hear it
-- means that the waiter's process is gone: it is dropped, and the next one is woken.
--
-- Nothing is written before everything is decided, so an error changes nothing. A function is made anew at every call
-- (0.2 us), so what is needed once stands where it is needed.

if redis.replicate_commands then redis.replicate_commands() end -- a Redis 6 that replicates scripts forbids TIME

local FORMAT = 1
local MOST_WAITERS = 1024
local AHEAD = 3600 * 1000000 -- how far beyond our clock a token is believed
local EXACT = 9007199254740992 -- 2^53: below, every whole number is exact
local ADDRESS_DIGITS = 20

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local operation, owner, attempt = ARGV[1], ARGV[2], tonumber(ARGV[3])
local changed = false

-- What is stored. Damaged, or not ours: then nothing is known, and nothing is granted.

local function is_whole(value) return type(value) == 'number' and value >= 0 and value < EXACT end

local function is_entry(each)
  return type(each) == 'table' and type(each.owner) == 'string' and is_whole(each.attempt) and is_whole(each.ends)
    and (each.ticket == nil or is_whole(each.ticket)) and (each.token == nil or is_whole(each.token))
    and (each.entry == nil or type(each.entry) == 'string')
end

local item = {trinco = FORMAT, token = now, waiters = {}} -- a token that this server cannot have given out before
local stored = redis.pcall('GET', KEYS[1])
if stored then
  local read, value, more = pcall(cmsgpack.unpack, stored)
  local sound = read and more == nil and type(value) == 'table' and value.trinco == FORMAT and is_whole(value.token)
    and (value.evidence == nil or type(value.evidence) == 'string') and type(value.waiters) == 'table'
    and (value.holder == nil or is_entry(value.holder)) and (#value.waiters > 0 or next(value.waiters) == nil)
  for _, each in ipairs(sound and value.waiters or {}) do
    sound = sound and is_entry(each) and each.ticket ~= nil
  end
  if not sound then return redis.error_reply('DAMAGED ' .. KEYS[1]) end
  item = value
end

-- Without what has run out. A term that ends now is over.

if item.holder and item.holder.ends <= now then item.holder = nil end
if item.waiters[1] then
  local live = {}
  for _, each in ipairs(item.waiters) do
    if each.ends > now then live[#live + 1] = each end
  end
  item.waiters = live
end
local holder = item.holder
local is_mine = holder and holder.owner == owner and holder.attempt == attempt

-- Ends

local function answer(grade, token, remaining, smaller, evidence, ticket)
  local line = string.format(
    '%s %.0f %s %.0f %s %s %s\n', grade, now, token and string.format('%.0f', token) or '-', remaining or 0,
    smaller and '1' or '0', evidence and #evidence or '-', ticket and #ticket or '-')
  return line .. (evidence or '') .. (ticket or '')
end

local function ring(name) -- whether somebody may have heard it
  local address = string.sub(string.match(name, '([^/]*)$'), 1, ADDRESS_DIGITS)
  if #address < ADDRESS_DIGITS or string.find(address, '[^0-9a-f]') then return true end -- its silence proves nothing
  return redis.pcall('PUBLISH', 'trinco:wake:' .. address, name) ~= 0
end

local function wake_first()
  while not item.holder and item.waiters[1] do
    if ring(item.waiters[1].owner) then return end
    table.remove(item.waiters, 1)
    changed = true
  end
end

local function finish(reply)
  if changed then
    local written = redis.pcall('SET', KEYS[1], cmsgpack.pack(item))
    if written.err then return written end
  end
  return reply
end

-- The operations: first those that need nothing more

if operation == 'release' then -- exactly this claim, holding or waiting
  local kept = {}
  for _, each in ipairs(item.waiters) do
    if each.owner ~= owner or each.attempt ~= attempt then kept[#kept + 1] = each end
  end
  changed = is_mine or #kept < #item.waiters
  if is_mine then item.holder = nil end
  item.waiters = kept
  local reply = answer(changed and 'done' or 'gone')
  wake_first()
  return finish(reply)
end

if operation == 'extend' then
  if not is_mine then return answer('gone') end
  holder.ends, changed = math.max(holder.ends, now + math.min(tonumber(ARGV[4]), tonumber(ARGV[5]))), true
  return finish(answer('committed', holder.token, holder.ends - now))
end

if operation == 'read' then
  local reply = {'item', now, item.token, item.evidence or false, holder and 1 or 0}
  local function tell(...)
    for place = 1, select('#', ...) do reply[#reply + 1] = select(place, ...) or false end
  end
  if holder then tell(holder.owner, holder.attempt, holder.ends, holder.ticket, holder.token, holder.entry) end
  for _, each in ipairs(item.waiters) do tell(each.owner, each.attempt, each.ends, each.ticket, each.entry) end
  return reply
end

-- What the others need

local function is_smaller(each, ticket) -- equal tickets by their owners' bytes: Lua's own < follows the server's locale
  if each.ticket ~= ticket then return each.ticket < ticket end
  local name = each.owner
  for position = 1, math.min(#name, #owner) do
    local left, right = string.byte(name, position), string.byte(owner, position)
    if left ~= right then return left < right end
  end
  return #name < #owner
end

local function has_smaller(ticket)
  for _, each in ipairs(item.waiters) do
    if each.owner ~= owner and (ticket == nil or is_smaller(each, ticket)) then return true end
  end
  return false
end

local function knows_later()
  if item.holder and item.holder.owner == owner and item.holder.attempt > attempt then return true end
  for _, each in ipairs(item.waiters) do
    if each.owner == owner and each.attempt > attempt then return true end
  end
  return false
end

local function without_owner()
  local others = {}
  for _, each in ipairs(item.waiters) do
    if each.owner ~= owner then others[#others + 1] = each end
  end
  return others
end

local function add_waiter(ticket, wait, entry) -- when there are too many, the largest ticket goes
  if knows_later() then return end
  local waiters, place = without_owner(), 1
  while waiters[place] and is_smaller(waiters[place], ticket) do place = place + 1 end
  table.insert(waiters, place, {owner = owner, attempt = attempt, ends = now + wait, ticket = ticket, entry = entry})
  if #waiters > MOST_WAITERS then table.remove(waiters) end
  item.waiters, changed = waiters, true
end

local function commit_token(token, entry)
  item.holder.token, item.token, item.evidence, changed = token, token, entry, true
end

if operation == 'commit' then
  local token = tonumber(ARGV[4])
  if not is_mine then return answer('gone', nil, 0, false, item.evidence) end
  if holder.token == token then return answer('committed', token) end
  if token <= item.token then return answer('refused', nil, 0, false, item.evidence) end
  commit_token(token, ARGV[5])
  return finish(answer('committed', token, 0, has_smaller(holder.ticket)))
end

if operation == 'yield' then
  local ticket, wait = tonumber(ARGV[4]), tonumber(ARGV[5])
  if is_mine then
    item.holder, changed = nil, true
    if wait ~= 0 and ticket then add_waiter(ticket, wait, ARGV[6]) end
  end
  local reply = answer(is_mine and 'done' or 'gone')
  wake_first()
  return finish(reply)
end

if operation ~= 'request' then return redis.error_reply('UNKNOWN operation') end

local ttl, t_max, ticket, wait = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local token, entry = ARGV[8], ARGV[9]

local largest = holder and holder.ticket and holder.owner ~= owner and holder or nil
for _, each in ipairs(item.waiters) do
  if each.owner ~= owner and (not largest or each.ticket > largest.ticket) then largest = each end
end
local largest_entry = largest and largest.entry -- of the largest ticket of anybody else

local may_take = not knows_later()
if may_take and holder then may_take = holder.owner == owner
elseif may_take then may_take = not has_smaller(ticket) end

if not may_take then
  local remaining, waits_already = holder and holder.ends - now, false
  for _, each in ipairs(item.waiters) do
    if each.owner == owner and each.attempt == attempt and each.ticket == ticket then
      waits_already = each.ends - now > wait / 2
    end
  end
  if wait ~= 0 and ticket then
    if not waits_already then add_waiter(ticket, wait, entry) end
    if holder and holder.ticket and holder.owner ~= owner and not is_smaller(holder, ticket) then
      ring(holder.owner) -- it must yield if it does not hold the whole yet; its silence proves nothing
    end
  end
  return finish(answer('refused', nil, remaining, has_smaller(ticket), nil, largest_entry))
end

local ends, committed = now + math.min(ttl, t_max), nil
if is_mine then ends, committed = math.max(ends, holder.ends), holder.token end
holder = {owner = owner, attempt = attempt, ends = ends, ticket = ticket, token = committed, entry = entry}
item.holder, item.waiters, changed = holder, without_owner(), true
local grade, evidence = 'committed', nil
if token ~= '' and not committed then
  local number = token == 'next' and item.token + 1 or tonumber(token)
  if number >= EXACT then return redis.error_reply('EXHAUSTED no token is left') end
  if token == 'next' or (number > item.token and number <= now + AHEAD) then
    commit_token(number, entry)
  else
    grade, evidence = 'tentative', item.evidence
  end
end
return finish(answer(grade, holder.token, ends - now, has_smaller(ticket), evidence, largest_entry))
