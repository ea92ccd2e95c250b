-- The ledger of one gate: who holds how many units of its limit, and who is next in
-- line. One call is one step, for one instance. The readable twin, with every reason, is
-- the type Ledger in Go; the same histories are run on both, and answers, messages and
-- state must be equal to the last byte.
--
-- KEYS[1] is the only key, a hash. ARGV is written by Request.Args, the answer is one
-- string read by ParseReply, and messages are read by ParseNews:
--
--   on KEY            e EPOCH          a new epoch, everybody is to speak at once
--                     c                somebody waits, who was told otherwise gives back
--                     n COUNT          another number of instances
--                     l LIMIT          another limit
--   on KEY:INSTANCE   g EPOCH GRANTED SLOTS   all that was lent to it so far in the epoch
--
-- The hash:
--
--   e        what settles: layout epoch identity learn cold renewed, version limit until
--            of the override, limit low high, members withheld nearest reclaimed lost
--   m        what moves: clock wall top held inuse waiting queued, head cursor tail of
--            the line, fences calm
--   n        the names of the members
--   u        slots that are held, a 1 at each number; only of a fenced gate
--   i NAME   a member, see the names of its fields below; spans as FIRST-LAST,... and
--            slots as NUMBER:GRANT:FENCE,...
--   h NAME   what people call the member
--   t PLACE  a ticket of the line: NAME LAST COST
--
-- (no space between the letter and the rest). Lists that are empty are a dash. Times
-- are ms. Numbers stay below 10^14, where Lua writes them in full; fences do not, so
-- they are text, EPOCH.COUNT.
--
-- Whatever is not readable is deleted and counts as lost: the step is taken anew, in a
-- new epoch. So nothing is written or published before the end of the step.


local key, id = KEYS[1], ARGV[1]
local match, gmatch, floor = string.match, string.gmatch, math.floor
local max, min, concat, number = math.max, math.min, table.concat, tonumber

-- The fields of e.
local EPOCH, IDENTITY, LEARN, COLD, RENEWED, VERSION, OVERRIDE, UNTIL = 1, 2, 3, 4, 5, 6, 7, 8
local LIMIT, LOW, HIGH, MEMBERS, WITHHELD, NEAREST, RECLAIMED, LOST = 9, 10, 11, 12, 13, 14, 15, 16
local SETTLED = '^1 (%d+) (%S+) (%d+) ([012]) (%d+) (%d+) (%-?%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$'
-- The fields of m.
local CLOCK, WALL, TOP, HELD, INUSE, WAITING, QUEUED = 1, 2, 3, 4, 5, 6, 7
local HEAD, CURSOR, TAIL, FENCES, CALM = 8, 9, 10, 11, 12
local MOVING = '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+)$'
-- The fields of a member. Flags: 1 its slots are numbered, 2 it was given up, 4 calls of
-- it stand in front of the line's cursor.
local mNUMBER, mGRANTED, mRETURNED, mACKED, mINUSE, mWAITING, mOLDEST = 1, 2, 3, 4, 5, 6, 7
local mHEARD, mNEXT, mQUEUED, mLAST, mCOST, mSEEN, mLEASE = 8, 9, 10, 11, 12, 13, 14
local mLIMIT, mWITHHOLD, mSHARE, mFLAGS, mSPANS, mSLOTS = 15, 16, 17, 18, 19, 20
local MEMBER = '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ([0-7]) (%S+) (%S+)$'
-- What cold says.
local NOTCOLD, WATCHED, STRANGERS = 0, 1, 2

local SPOILT = 'spoilt'

local E, M             -- e and m
local settled = false  -- e is to be written
local wipe = false     -- the epoch is new
local members = {}     -- by name, as far as they were read; false: there is none
local dirty = {}       -- names of those to be written
local spans = {}       -- of those, as numbers
local line = {}        -- tickets by place, as far as they were read; false: there is none
local news = {}        -- channel, text, channel, text ...
local gone = {}        -- fields to be deleted
local names, named     -- of the members, if they were read; whether they changed
local used, wasUsed    -- the slots
local epoch = number(ARGV[3])
local lease = max(1, number(ARGV[16]))
local giveUp = floor(lease * 8 / 5)
local wall, identity, up, subscribers

local function publish(channel, text)
  news[#news + 1] = channel
  news[#news + 1] = text
end

-- ask learns wall clock, identity and uptime of the server. A test says them instead.
local function ask()
  if ARGV[26] then
    local w, i, u, s = match(ARGV[26], '^(%d+)|([^|]*)|(%-?%d+)|(.*)$')
    wall, identity, up, subscribers = number(w), i, number(u), s
    return
  end
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then info = '' end
  local run, us, seconds = match(info, 'run_id:(%w+).-server_time_usec:(%d+).-uptime_in_seconds:(%d+)')
  identity = run or match(info, 'run_id:(%w+)') or ARGV[25]
  up = seconds and number(seconds) * 1000 or -1
  if us then
    wall = floor(number(us) / 1000)
  else
    local t = redis.call('TIME')
    wall = number(t[1]) * 1000 + floor(number(t[2]) / 1000)
  end
  if match(info, 'redis_mode:cluster') then subscribers = '?' end
end

-- list returns the names of the members.
local function list()
  if not names then
    names = {}
    for name in gmatch(redis.call('HGET', key, 'n') or '', '%S+') do names[#names + 1] = name end
    if #names ~= E[MEMBERS] then error(SPOILT, 0) end
  end
  return names
end

-- strangers returns how many are subscribed and have not spoken in this epoch, nil if
-- that cannot be known: subscribers of a Redis Cluster are anywhere.
local function strangers()
  if subscribers == '?' then return nil end
  local channels, n = {key}, 0
  for _, name in ipairs(list()) do channels[#channels + 1] = key .. ':' .. name end
  if subscribers then
    local is = {}
    for name in gmatch(subscribers, '%S+') do is[key .. ':' .. name], n = true, n + 1 end
    for i = 2, #channels do if is[channels[i]] then n = n - 1 end end
    return n
  end
  local counts = redis.pcall('PUBSUB', 'NUMSUB', unpack(channels))
  if counts.err then return nil end
  n = counts[2]
  for i = 4, #counts, 2 do n = n - counts[i] end
  return n
end

-- startedMs returns for how long the server surely has been the one to ask. One that
-- ever was a replica may have been promoted just now.
local function startedMs()
  if up < 0 or ARGV[26] then return up end
  local info = redis.pcall('INFO', 'replication')
  if type(info) ~= 'string' or not match(info, 'master_replid2:0+%s') then return -1 end
  return up
end

local function beginEpoch(lost)
  local least = number(ARGV[24])
  local coldStart = not E and epoch == 0 and not lost
  local o = E or {}
  E = {max(wall, max(E and E[EPOCH] or 0, least) + 1), identity == '' and '-' or identity,
    giveUp, NOTCOLD, wall, o[VERSION] or 0, o[OVERRIDE] or -1, o[UNTIL] or 0,
    -1, 0, 0, 0, 0, 15 * lease, 0, 0}
  M = {0, wall, 0, 0, 0, 0, 0, 1, 1, 0, 0, '-'}
  members, names, used, wasUsed, wipe, settled = {[id] = false}, {}, '', '', true, true
  if coldStart then
    local ms = startedMs()
    if ms >= 0 and ms < giveUp then
      E[LEARN], E[COLD] = giveUp - ms, WATCHED
    elseif ms >= 0 and strangers() then
      E[COLD] = STRANGERS
    end
  end
  publish(key, 'e ' .. E[EPOCH])
end

local function record(text)
  local m = {match(text, MEMBER)}
  if not m[mSLOTS] then error(SPOILT, 0) end
  for i = 1, mFLAGS do m[i] = number(m[i]) end
  return m
end

-- load reads e, m and the speaker, and moves the clock or begins an epoch.
local function load(lost)
  local got = redis.pcall('HMGET', key, 'e', 'm', 'i' .. id, 'u')
  if got.err then error(SPOILT, 0) end
  E, M, members[id], used = nil, nil, got[3] and record(got[3]), got[4] or ''
  if got[1] or got[2] or got[3] then
    E, M = {match(got[1] or '', SETTLED)}, {match(got[2] or '', MOVING)}
    if not E[LOST] or not M[CALM] or match(used, '[^01]') then error(SPOILT, 0) end
    E[EPOCH] = number(E[EPOCH])
    for i = LEARN, LOST do E[i] = number(E[i]) end
    for i = CLOCK, FENCES do M[i] = number(M[i]) end
  end
  wasUsed = used
  if not E or identity ~= '' and identity ~= E[IDENTITY]
    or number(ARGV[24]) > E[EPOCH] + floor(M[FENCES] / 1048576) then
    return beginEpoch(lost)
  end
  local passed = min(max(0, wall - M[WALL]), floor(lease / 4))
  if epoch == E[EPOCH] then passed = max(passed, min(number(ARGV[6]) - M[CLOCK], lease)) end
  M[CLOCK], M[WALL] = M[CLOCK] + passed, wall
end


-- has says whether a member has a flag.
local function has(m, flag) return floor(m[mFLAGS] / flag) % 2 == 1 end

local function free() return E[LIMIT] - M[HELD] - E[WITHHELD] end

local function learning() return M[CLOCK] < E[LEARN] end

local function busy(m) return m[mGRANTED] > m[mRETURNED] or m[mQUEUED] > 0 or m[mWITHHOLD] > 0 end

local function givenUp(m) return m[mSEEN] + floor(m[mLEASE] * 8 / 5) end

local function apart(m)
  local w = m[mWITHHOLD]
  return w == 0 and 0 or givenUp(m) + w + floor(w / 16)
end

local function forgotten(m) return max(m[mSEEN] + 15 * m[mLEASE], apart(m)) end

local function withheld(m) return has(m, 2) and M[CLOCK] < apart(m) and m[mSHARE] or 0 end

local function due(m)
  if has(m, 2) then return m[mWITHHOLD] > 0 and apart(m) or forgotten(m) end
  return busy(m) and givenUp(m) or forgotten(m)
end

-- fetch reads the members of these names, as far as they were not read.
local function fetch(wanted)
  local missing, fields = {}, {}
  for _, name in ipairs(wanted) do
    if members[name] == nil then
      members[name] = false
      missing[#missing + 1], fields[#fields + 1] = name, 'i' .. name
    end
  end
  if #fields == 0 then return end
  for i, text in ipairs(redis.call('HMGET', key, unpack(fields))) do
    members[missing[i]] = text and record(text)
  end
end

-- fetchLine reads the tickets from one place to another, and their members.
local function fetchLine(from, to)
  local fields, of = {}, {}
  for place = from, to do
    if line[place] == nil then fields[#fields + 1] = 't' .. place end
  end
  if #fields > 0 then
    local got, i = redis.call('HMGET', key, unpack(fields)), 0
    for place = from, to do
      if line[place] == nil then
        i = i + 1
        line[place] = false
        if got[i] then
          local name, last, cost = match(got[i], '^(%S+) (%d+) (%d+)$')
          if not name then error(SPOILT, 0) end
          line[place] = {name, number(last), number(cost)}
        end
      end
    end
  end
  for place = from, to do
    if line[place] then of[#of + 1] = line[place][1] end
  end
  fetch(of)
end

local function fromTheFront() M[CURSOR] = M[HEAD] end

local function counted()
  if not learning() then publish(key, 'n ' .. E[MEMBERS]) end
end

-- Slots. used has a 1 at each number that is held.
local function use(n)
  if #used < n then used = used .. string.rep('0', n - #used) end
  used = string.sub(used, 1, n - 1) .. '1' .. string.sub(used, n + 1)
end

local function unuse(n)
  used = match(string.sub(used, 1, n - 1) .. '0' .. string.sub(used, n + 1), '^(.-)0*$')
end

local function freeSlots(slots)
  for n in gmatch(slots, '(%d+):%d+:[%d.]+') do unuse(number(n)) end
end

local function addSlot(m, n, fence)
  use(n)
  local s = n .. ':' .. m[mGRANTED] .. ':' .. fence
  m[mSLOTS] = m[mSLOTS] == '-' and s or m[mSLOTS] .. ',' .. s
end

local function giveBack(m)
  M[HELD] = M[HELD] - (m[mGRANTED] - m[mRETURNED])
  freeSlots(m[mSLOTS])
  M[INUSE], M[WAITING], M[QUEUED] = M[INUSE] - m[mINUSE], M[WAITING] - m[mWAITING], M[QUEUED] - m[mQUEUED]
  m[mRETURNED], m[mSLOTS], m[mSPANS], m[mNEXT] = m[mGRANTED], '-', '-', m[mHEARD] + 1
  m[mINUSE], m[mWAITING], m[mQUEUED] = 0, 0, 0
end

local function forget(name)
  gone[#gone + 1] = 'i' .. name
  gone[#gone + 1] = 'h' .. name
  members[name] = false
  for i, n in ipairs(list()) do
    if n == name then table.remove(names, i) break end
  end
  named, settled, E[MEMBERS] = true, true, #names
end

-- recount gives up and forgets whoever is due, and adds up what the others have.
local function recount()
  local before = #list()
  fetch(names)
  for _, name in ipairs({unpack(names)}) do
    local m = members[name]
    if not m then error(SPOILT, 0) end
    if not has(m, 2) and busy(m) and M[CLOCK] >= givenUp(m) then
      E[RECLAIMED] = E[RECLAIMED] + m[mGRANTED] - m[mRETURNED]
      giveBack(m)
      m[mFLAGS], dirty[name] = m[mFLAGS] + 2, true
    end
    if (has(m, 2) or not busy(m)) and M[CLOCK] >= forgotten(m) then forget(name) end
  end
  settled, E[WITHHELD], E[NEAREST] = true, 0, M[CLOCK] + 15 * lease
  for i, name in ipairs(names) do
    local m = members[name]
    if i == 1 then E[LOW], E[HIGH] = m[mLIMIT], m[mLIMIT] end
    E[LOW], E[HIGH] = min(E[LOW], m[mLIMIT]), max(E[HIGH], m[mLIMIT])
    E[WITHHELD], E[NEAREST] = E[WITHHELD] + withheld(m), min(E[NEAREST], due(m))
  end
  fromTheFront()
  if #names ~= before then counted() end
end

-- count recounts if something may be due, or the speaker has another limit.
local function count()
  local m, limit = members[id], number(ARGV[12])
  if m and number(ARGV[2]) > m[mNUMBER] and m[mLIMIT] ~= limit then
    m[mLIMIT] = limit
  elseif M[CLOCK] < E[NEAREST] then
    return
  end
  recount()
end

-- claimed: somebody knows of an older epoch, so data was lost.
local function claimed()
  if E[COLD] ~= NOTCOLD and M[CLOCK] < giveUp then
    settled, E[COLD], E[LEARN] = true, NOTCOLD, M[CLOCK] + giveUp
  elseif learning() and E[LEARN] < giveUp then
    settled, E[LEARN] = true, giveUp
  end
end

-- meet ends a cold start's learning as soon as everybody who is subscribed has spoken.
local function meet()
  if E[COLD] ~= STRANGERS or not learning() then return end
  local n = strangers()
  if n and n <= 0 then settled, E[COLD], E[LEARN] = true, WATCHED, M[CLOCK] end
end

local function join(fenced)
  local limit, heard = number(ARGV[12]), number(match(ARGV[23], '(%d+)$') or 0)
  local m = {0, M[TOP], M[TOP], M[TOP], 0, 0, 0, heard, heard + 1, 0, 0, 0,
    M[CLOCK], lease, limit, 0, 0, fenced and 1 or 0, '-', '-'}
  list()
  if #names == 0 then E[LOW], E[HIGH] = limit, limit end
  E[LOW], E[HIGH] = min(E[LOW], limit), max(E[HIGH], limit)
  names[#names + 1] = id
  settled, named, E[MEMBERS], members[id] = true, id, #names, m
  counted()
  return m
end

-- limits puts the limit in force.
local function limits(newer)
  local version, limit, lasts = number(ARGV[13]), number(ARGV[14]), number(ARGV[15])
  if newer and (version > E[VERSION] or version == E[VERSION] and limit < E[OVERRIDE]) then
    settled, E[VERSION], E[OVERRIDE] = true, version, max(-1, limit)
    E[UNTIL] = lasts > 0 and limit >= 0 and wall + lasts or 0
  end
  if E[UNTIL] > 0 and wall >= E[UNTIL] then settled, E[OVERRIDE], E[UNTIL] = true, -1, 0 end
  limit = E[OVERRIDE] >= 0 and E[OVERRIDE] or E[LOW]
  if limit == E[LIMIT] then return end
  if E[LIMIT] >= 0 then publish(key, 'l ' .. limit) end
  settled, E[LIMIT] = true, limit
  fromTheFront()
end

-- keepSlots frees the slots that the speaker has heard of and does not list.
local function keepSlots(m, granted)
  local kept, listed = {}, ',' .. ARGV[21] .. ','
  for n, g, fence in gmatch(m[mSLOTS], '(%d+):(%d+):([%d.]+)') do
    if number(g) > granted or string.find(listed, ',' .. n .. ':' .. fence .. ',', 1, true) then
      kept[#kept + 1] = n .. ':' .. g .. ':' .. fence
    else
      unuse(number(n))
      m[mRETURNED] = m[mRETURNED] + 1
    end
  end
  m[mSLOTS] = #kept > 0 and concat(kept, ',') or '-'
end

local function claim(m)
  local n = number(ARGV[7])
  if m[mFLAGS] % 2 == 1 then
    for slot, fence in gmatch(ARGV[21], '(%d+):([%d.]+)') do
      n = n - 1
      if n < 0 then break end
      slot = number(slot)
      if slot >= 1 and string.sub(used, slot, slot) ~= '1' then
        m[mGRANTED] = m[mGRANTED] + 1
        m[mACKED] = m[mGRANTED]
        addSlot(m, slot, fence)
      end
    end
  elseif n > m[mGRANTED] - m[mRETURNED] then
    m[mGRANTED] = m[mRETURNED] + n
    m[mACKED] = m[mGRANTED]
  end
  M[TOP] = max(M[TOP], m[mGRANTED])
end

-- figures hears what the speaker holds, and returns what it held that is lost.
local function figures(m)
  local known, was = m[mNUMBER] > 0, has(m, 2)
  if m[mFLAGS] >= 4 then
    m[mFLAGS] = m[mFLAGS] - 4
    fromTheFront()
  end
  m[mNUMBER], m[mSEEN], m[mLEASE], m[mWITHHOLD] = number(ARGV[2]), M[CLOCK], lease, number(ARGV[17])
  local before, own = m[mGRANTED] - m[mRETURNED], 0
  if epoch == E[EPOCH] then
    local granted, returned = number(ARGV[4]), number(ARGV[5])
    if m[mFLAGS] % 2 == 1 then
      for _ in gmatch(ARGV[21], '[^,]+') do own = own + 1 end
      keepSlots(m, granted)
    else
      own = granted - min(granted, returned)
      m[mRETURNED] = max(m[mRETURNED], min(returned, m[mGRANTED]))
    end
    m[mACKED] = max(m[mACKED], min(granted, m[mGRANTED]))
  elseif epoch ~= 0 then
    own = number(ARGV[7])
  end
  if was then m[mACKED] = m[mGRANTED] end
  if epoch ~= 0 and learning() then claim(m) end
  local held = m[mGRANTED] - m[mRETURNED]
  M[HELD] = M[HELD] + held - before
  local lost = max(0, own - held)
  if lost > 0 and (was or not known) then settled, E[LOST] = true, E[LOST] + lost end
  return lost
end

-- Spans of calls, as pairs of numbers in one list.
local function spansOf(name, m)
  local list = spans[name]
  if not list then
    list = {}
    for a, b in gmatch(m[mSPANS], '(%d+)%-(%d+)') do
      list[#list + 1] = number(a)
      list[#list + 1] = number(b)
    end
    spans[name] = list
  end
  return list
end

local function between(list, first, last)
  local n = 0
  for i = 1, #list, 2 do
    local a, b = max(list[i], first), min(list[i + 1], last)
    if a <= b then n = n + b - a + 1 end
  end
  return n
end

local function stands(name, m, t) return between(spansOf(name, m), m[mNEXT], min(t[2], m[mHEARD])) end

local function nth(list, first, n)
  for i = 1, #list, 2 do
    local a, b = max(list[i], first), list[i + 1]
    if a <= b then
      if n <= b - a + 1 then return a + n - 1 end
      n = n - (b - a + 1)
    end
  end
  return first
end

-- standing hears which calls of the speaker wait; those that only ask do not stand.
local function standing(m)
  local inUse, waiting = number(ARGV[9]), number(ARGV[8])
  M[INUSE], M[WAITING] = M[INUSE] + inUse - m[mINUSE], M[WAITING] + waiting - m[mWAITING]
  m[mINUSE], m[mWAITING], m[mOLDEST] = inUse, waiting, number(ARGV[10])
  local list, text, e = {}, {}, 0
  local function add(first, last)
    first = max(first, e + 1)
    if first > last then return end
    if e > 0 and first == e + 1 then
      list[#list] = last
    else
      list[#list + 1] = first
      list[#list + 1] = last
    end
    e = last
  end
  for a, b in gmatch(ARGV[23], '(%d+)%-(%d+)') do add(number(a), min(number(b), m[mHEARD])) end
  for first, calls, ask in gmatch(ARGV[22], '(%d+):(%d+):%d+(a?)') do
    if ask == '' then add(number(first), number(first) + number(calls) - 1) end
  end
  for i = 1, #list, 2 do text[#text + 1] = list[i] .. '-' .. list[i + 1] end
  m[mSPANS], spans[id] = #text > 0 and concat(text, ',') or '-', list
  local queued = between(list, m[mNEXT], m[mHEARD])
  M[QUEUED], m[mQUEUED] = M[QUEUED] + queued - m[mQUEUED], queued
end

local function grant(m, units)
  if m[mFLAGS] % 2 == 1 then
    for _ = 1, units do
      m[mGRANTED], M[FENCES] = m[mGRANTED] + 1, M[FENCES] + 1
      local n = string.find(used, '0', 1, true) or #used + 1
      addSlot(m, n, E[EPOCH] + floor(M[FENCES] / 1048576) .. '.' .. M[FENCES] % 1048576)
    end
  else
    m[mGRANTED] = m[mGRANTED] + units
  end
  M[HELD], M[TOP] = M[HELD] + units, max(M[TOP], m[mGRANTED])
end

-- resume ends the withholding of the speaker's share.
local function resume(m, share)
  if not has(m, 2) then return end
  m[mFLAGS], E[WITHHELD], settled = m[mFLAGS] - 2, E[WITHHELD] - share, true
  fromTheFront()
end

-- cover lends the speaker what it needs for units that run there and are not lent, before
-- anybody else: they run already.
local function cover(m, spare)
  local n = min(spare, free())
  if n > 0 and not learning() then grant(m, n) end
end

-- mayHave returns how many calls of a ticket its instance may be granted at all.
local function mayHave(name, m, cost)
  if cost > E[LIMIT] - E[WITHHELD] then return 0 end
  if name == id then return 1e14 end
  local unacked = m[mGRANTED] - m[mACKED]
  if unacked == 0 then return max(1, floor(4 / cost)) end
  return max(0, floor((4 - unacked) / cost))
end

local function remove(place, m)
  local t = line[place]
  line[place] = false
  if not t then return end
  gone[#gone + 1] = 't' .. place
  if m and m[mLAST] == place then m[mLAST], dirty[t[1]] = 0, true end
end

-- tell says to those that were lent something that they were.
local function tell(granted)
  for _, name in ipairs(granted) do
    local m, slots = members[name], {}
    for n, g, fence in gmatch(m[mSLOTS], '(%d+):(%d+):([%d.]+)') do
      if number(g) > m[mACKED] then slots[#slots + 1] = n .. ':' .. fence end
    end
    publish(key .. ':' .. name, 'g ' .. E[EPOCH] .. ' ' .. m[mGRANTED] .. ' '
      .. (#slots > 0 and concat(slots, ',') or '-'))
  end
end

-- lend lends what is free to whoever is first in line.
local function lend()
  if learning() then return end
  local place, tail, kept, looked, ahead = M[CURSOR], M[TAIL], nil, 0, M[CURSOR]
  local passed, told, granted = {}, {}, {}
  while place <= tail and free() > 0 and looked < 32 do
    if place >= ahead then
      ahead = min(tail, place + min(free(), 31)) + 1
      fetchLine(place, ahead - 1)
    end
    local t, m, name = line[place], nil, nil
    local more, done, stand = true, true, 0
    if t then
      name = t[1]
      m = members[name]
      if m then stand = stands(name, m, t) end
    end
    if stand > 0 then
      looked = looked + 1
      local calls = mayHave(name, m, t[3])
      local n = min(stand, calls, floor(free() / t[3]))
      if passed[name] then calls, n = 0, 0 end
      if n > 0 then
        grant(m, n * t[3])
        m[mNEXT] = nth(spans[name], m[mNEXT], n) + 1
        m[mQUEUED], M[QUEUED], dirty[name] = m[mQUEUED] - n, M[QUEUED] - n, true
        if name ~= id and not told[name] then
          told[name], granted[#granted + 1] = true, name
        end
      end
      done = n == stand
      more = done or n == calls
      if more and not done then
        passed[name] = true
        if m[mFLAGS] < 4 then m[mFLAGS], dirty[name] = m[mFLAGS] + 4, true end
      end
    end
    if done then remove(place, m) elseif not kept then kept = place end
    if not more then break end
    place = place + 1
  end
  if M[CURSOR] == M[HEAD] then M[HEAD] = kept or place end
  M[CURSOR] = place
  tell(granted)
end

local function enqueue(m, first, last, calls, cost)
  if m[mQUEUED] == 0 then m[mNEXT] = first end
  if m[mLAST] ~= M[TAIL] or m[mCOST] ~= cost or m[mLAST] < M[HEAD] then M[TAIL] = M[TAIL] + 1 end
  line[M[TAIL]] = {id, last, cost, true}
  m[mLAST], m[mCOST] = M[TAIL], cost
  m[mQUEUED], M[QUEUED] = m[mQUEUED] + calls, M[QUEUED] + calls
end

-- arrived hears of calls that joined the speaker's line.
local function arrived(m)
  for a, b, c, ask in gmatch(ARGV[22], '(%d+):(%d+):(%d+)(a?)') do
    local first, last, cost = max(number(a), m[mHEARD] + 1), number(a) + number(b) - 1, max(1, number(c))
    if last > m[mHEARD] then
      local calls = last - first + 1
      if M[QUEUED] == 0 and not learning() then
        local now = min(calls, floor(max(0, free()) / cost))
        grant(m, now * cost)
        calls, first = calls - now, first + now
      end
      if calls > 0 and ask == '' then enqueue(m, first, last, calls, cost) end
      m[mHEARD] = last
      if m[mQUEUED] == 0 then m[mNEXT] = last + 1 end
    end
  end
end

-- tidy moves the line together if it is mostly holes.
local function tidy()
  local head, tail = M[HEAD], M[TAIL]
  if tail - head + 1 <= 2 * M[QUEUED] + 256 then return end
  for from = head, tail, 500 do fetchLine(from, min(tail, from + 499)) end
  for place = head, tail do
    local t = line[place]
    if t then
      local m = members[t[1]]
      remove(place)
      if m and stands(t[1], m, t) > 0 then
        M[TAIL] = M[TAIL] + 1
        line[M[TAIL]] = {t[1], t[2], t[3], true}
      end
    end
  end
  M[HEAD] = tail + 1
  fromTheFront()
end

-- hush keeps in mind who was told that nobody else waits, and tells them once if
-- somebody does.
local function hush(m, contended)
  if m[mQUEUED] > 0 and M[CALM] ~= '-' and M[CALM] ~= id then
    publish(key, 'c')
    M[CALM] = '-'
  end
  if contended then
    if M[CALM] == id then M[CALM] = '-' end
  else
    M[CALM] = (M[CALM] == '-' or M[CALM] == id) and id or '*'
  end
end

local function reply(m, newer, lost)
  local share = min(max(floor(E[LIMIT] / max(1, E[MEMBERS])), number(ARGV[18])), E[LIMIT])
  local contended = M[QUEUED] > (m and m[mQUEUED] or 0) or free() < 0
  local slots = '-'
  if m and m[mSLOTS] ~= '-' then slots = string.gsub(m[mSLOTS], ':%d+:', ':') end
  if m and newer then
    m[mSHARE] = share
    hush(m, contended)
  end
  return concat({E[EPOCH], M[CLOCK], m and m[mGRANTED] or 0, m and m[mRETURNED] or 0,
    m and m[mHEARD] or 0, m and m[mQUEUED] or 0, lost, E[LIMIT],
    E[VERSION], E[OVERRIDE], E[UNTIL] > 0 and E[UNTIL] - wall or 0,
    M[HELD], M[INUSE], M[WAITING], E[MEMBERS], share, contended and 1 or 0,
    max(0, E[LEARN] - M[CLOCK]), E[RECLAIMED], E[LOST], E[LOW], E[LOW] ~= E[HIGH] and 1 or 0,
    slots}, ' ')
end

-- bulk calls a command with arguments of which there may be many.
local function bulk(command, args)
  for from = 1, #args, 4000 do
    redis.call(command, key, unpack(args, from, min(#args, from + 3999)))
  end
end

-- write makes it all so.
local function write()
  local sets, renew = {'m', concat(M, ' ')}, wipe or wall - E[RENEWED] >= 3600000 or wall < E[RENEWED]
  local function set(field, value)
    sets[#sets + 1] = field
    sets[#sets + 1] = value
  end
  if renew then E[RENEWED], settled = wall, true end
  if settled then set('e', '1 ' .. concat(E, ' ')) end
  for name in pairs(dirty) do
    if members[name] then set('i' .. name, concat(members[name], ' ')) end
  end
  for place, t in pairs(line) do
    if t and t[4] then set('t' .. place, t[1] .. ' ' .. t[2] .. ' ' .. t[3]) end
  end
  if named == id then set('h' .. id, ARGV[20]) end
  if named and #names > 0 then set('n', concat(names, ' ')) end
  if named and #names == 0 then gone[#gone + 1] = 'n' end
  if used ~= wasUsed and used ~= '' then set('u', used) end
  if used ~= wasUsed and used == '' then gone[#gone + 1] = 'u' end
  if wipe then redis.call('DEL', key) else bulk('HDEL', gone) end
  bulk('HSET', sets)
  if renew then redis.call('PEXPIRE', key, 604800000) end
  for i = 1, #news, 2 do redis.call('PUBLISH', news[i], news[i + 1]) end
end

local function step(spoilt)
  load(spoilt)
  count()
  local m, leaving = members[id], string.find(ARGV[19], 'l', 1, true)
  local newer = not m or number(ARGV[2]) > m[mNUMBER]
  if not m and epoch ~= 0 and epoch < E[EPOCH] then claimed() end
  if m and leaving and newer then
    giveBack(m)
    forget(id)
    counted()
    recount()
    m = nil
  elseif not m and not leaving then
    m = join(string.find(ARGV[19], 'f', 1, true))
  end
  m = m or nil
  meet()
  limits(newer)
  local lost = 0
  local speaks = m and newer
  if speaks then
    dirty[id] = true
    local share = withheld(m)
    lost = figures(m)
    standing(m)
    resume(m, share)
    cover(m, number(ARGV[11]))
  end
  lend()
  if speaks then
    arrived(m)
    local d = due(m)
    if d < E[NEAREST] then settled, E[NEAREST] = true, d end
  end
  tidy()
  local answer = reply(m, newer, lost)
  write()
  return answer
end

ask()
local ok, answer = pcall(step)
if not ok and answer == SPOILT then
  redis.call('DEL', key)
  settled, wipe, members, dirty, spans, line, news, gone, names, named = false, false, {}, {}, {}, {}, {}, {}, nil, nil
  ok, answer = pcall(step, true)
end
if not ok then error(answer, 0) end
return answer
