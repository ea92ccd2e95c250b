-- The ledger of one gate: who holds how many units of its limit, and who is next in
-- line. One call is one step, for one instance. The readable twin, with the reasons, is
-- the type Ledger in Go: the same histories are run on both, and what they answer,
-- publish and keep must be equal to the last byte. This one is written for speed: it is
-- one piece, because each function and each variable that a function shares costs more
-- than what it does; numbers are packed, because to print and read them costs most of
-- all; a common step is INFO, HMGET and HSET.
--
-- KEYS[1] is the only key, a hash. ARGV[1] is packed by Request.Args, the answer is read
-- by ParseReply, and what is published by ParseNews:
--
--   on KEY            e EPOCH          a new epoch, everybody is to speak at once
--                     c                somebody waits, who was told otherwise gives back
--                     n COUNT          another number of instances
--                     l LIMIT          another limit
--   on KEY:INSTANCE   g EPOCH GRANTED SLOTS   all that was lent to it so far in the epoch
--
-- The fields of the hash, each value packed but for names, hosts and u:
--
--   e        what settles, m what moves with every step, i and a NAME a member, t and a
--            PLACE a ticket: name, last call, cost. Their parts are named below.
--   n        the names of the members
--   u        a 1 at each number of a slot that is held, if slots are numbered
--   h NAME   what people call the member (no space between letter and name)
--
-- Times are ms. Numbers stay below 2^53; fences do not, so they are text, EPOCH.COUNT.
-- What cannot be read is lost: the epoch ends, and another begins by learning.

local key = KEYS[1]
local pack, unpackm = cmsgpack.pack, cmsgpack.unpack
local floor, max, min, sub, find = math.floor, math.max, math.min, string.sub, string.find

local id, seq, epoch, granted, returned, claim, waiting, inUse, oldest, spare, limit,
  version, override, lasts, lease, withhold, minShare, contact, may, fenced, leaving, host,
  slots, arrived, standing, least, identity = unpackm(ARGV[1])
fenced, leaving = fenced == 1, leaving == 1
local giveUp = floor(lease * 8 / 5)

-- The parts of e. COLD says what is special about an epoch that began where there was
-- no state, by an instance that knew of none. ORIGIN is where elapsed counts from,
-- SHARES are those of all whose share is withheld once they are missed, DOUBT is when
-- somebody may be missed next.
local LAYOUT, EPOCH, IDENTITY, LEARN, COLD, RENEWED, VERSION, OVERRIDE, UNTIL = 1, 2, 3, 4, 5, 6, 7, 8, 9
local LIMIT, LOW, MEMBERS, WITHHELD, NEAREST, RECLAIMED, LOST = 10, 11, 12, 13, 14, 15, 16
local ORIGIN, SHARES, DOUBT = 17, 18, 19
local NOTCOLD, WATCHED, STRANGERS = 0, 1, 2
-- The parts of m; the first is the epoch once more.
local CLOCK, WALL, TOP, HELD, INUSE, WAITING, QUEUED = 2, 3, 4, 5, 6, 7, 8
local HEAD, CURSOR, TAIL, FENCES, CALM = 9, 10, 11, 12, 13
-- The parts of a member. FLAGS: 1 its slots are numbered, 2 it was given up. PASSED is
-- the place of its first ticket that was passed over, SPANS are pairs of numbers of
-- calls, SLOTS triples of number, grant and fence. CONTACT is when it surely heard us.
local SEQ, GRANTED, RETURNED, ACKED, TOLD, RUNS, WAITS, OLDEST, HEARD, NEXT, STAND = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
local LAST, COST, PASSED, SEEN, LEASE, LIMITED, WITHHOLD, SHARE, CONTACT, FLAGS, SPANS, SLOTS = 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23

-- 1. The server. A test says what it is to be.
local wall, up, subscribers, info
if ARGV[2] then
  local w, i, u, s = string.match(ARGV[2], '^(%d+)|([^|]*)|(%-?%d+)|(.*)$')
  wall, identity, up, subscribers = tonumber(w), i, tonumber(u), s
else
  info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then info = '' end
  local at = find(info, 'run_id:', 1, true)
  if at then identity = string.match(info, '^%w+', at + 7) end
  at = find(info, 'server_time_usec:', at or 1, true)
  if at then
    wall = floor(string.match(info, '^%d+', at + 17) / 1000)
  else
    local t = redis.call('TIME')
    wall = t[1] * 1000 + floor(t[2] / 1000)
  end
end

-- 2. What is kept.
local E, M, me, used
local got = redis.pcall('HMGET', key, 'e', 'm', 'i' .. id, 'u')
local lost = got.err ~= nil
if lost and not find(got.err, 'WRONGTYPE', 1, true) then
  redis.call('HMGET', key, 'e')  -- fails as well: who may not read must not wipe
end
if not lost and (got[1] or got[2] or got[3]) then
  local readable = pcall(function()
    E, M, me = {unpackm(got[1])}, {unpackm(got[2])}, got[3] and {unpackm(got[3])}
  end)
  used = got[4] or ''
  lost = not readable or #E ~= DOUBT or E[LAYOUT] ~= 3 or #M ~= CALM or M[1] ~= E[EPOCH]
    or (me and #me ~= SLOTS) or find(used, '[^01]') ~= nil
end
if lost then E, M, me = nil, nil, nil end

-- 3. The clock moves, or an epoch begins. The clock follows the server's, which may
-- jump, by a quarter of the lease at most, unless nobody has anything to lose. By
-- elapsed, which is the server's with its jumps, instances are missed.
local settled, wipe, names, named = false, false, nil, false
local news = {}
local wasUsed = used
if not E or (identity ~= '' and identity ~= E[IDENTITY]) or least > E[EPOCH] + floor(M[FENCES] / 1048576) then
  local cold = not E and epoch == 0 and not lost
  local o = E or {}
  E = {3, max(wall, max(o[EPOCH] or 0, least) + 1), identity, giveUp, NOTCOLD, wall,
    o[VERSION] or 0, o[OVERRIDE] or -1, o[UNTIL] or 0, -1, 0, 0, 0, 15 * lease, 0, 0,
    wall - 1, 0, 15 * lease}
  M = {E[EPOCH], 0, wall, 0, 0, 0, 0, 0, 1, 1, 0, 0, ''}
  me, names, used, wasUsed, wipe, settled = nil, {}, '', '', true, true
  if cold then
    if not up then
      up = string.match(info, 'uptime_in_seconds:(%d+)')
      up = up and up * 1000 or -1
      -- One that ever was a replica may have been promoted just now.
      local r = up >= 0 and redis.pcall('INFO', 'replication')
      if type(r) ~= 'string' or not string.match(r, 'master_replid2:0+%s') then up = -1 end
    end
    if up >= 0 and up < giveUp then
      E[LEARN], E[COLD] = giveUp - up, WATCHED
    elseif up >= 0 then
      E[COLD] = STRANGERS
    end
  end
  news = {key, 'e ' .. E[EPOCH]}
else
  local passed = wall - M[WALL]
  if passed < 0 then -- nobody knows what passed
    settled, E[ORIGIN], passed = true, E[ORIGIN] + passed - lease, 0
  end
  if M[HELD] > 0 or M[QUEUED] > 0 or E[WITHHELD] > 0 or withhold > 0
    or M[CLOCK] < E[LEARN] or (E[COLD] ~= NOTCOLD and M[CLOCK] < giveUp) then
    passed = min(passed, floor(lease / 4))
  end
  M[CLOCK], M[WALL] = M[CLOCK] + passed, wall
end

local elapsed, eased = wall - E[ORIGIN], false

local newer = not me or seq > me[SEQ]
local members, dirty = {[id] = me or false}, {}
local line = {}  -- tickets by place; false: there is none, a fourth part: to be written
local gone = {}  -- fields to be deleted

-- spoilt ends a step that finds in its middle that it cannot read what is kept. The next
-- one then finds something of another kind.
local function spoilt()
  redis.call('SET', key, 'spoilt')
  error('forebay: what is kept in ' .. key .. ' is damaged; it counts as lost')
end

-- parts reads a packed value of so many parts.
local function parts(text, n)
  local ok, p = pcall(function() return {unpackm(text)} end)
  if not ok or #p ~= n then spoilt() end
  return p
end

-- list reads the names of the members.
local function list()
  if names then return end
  names = {}
  for name in string.gmatch(redis.call('HGET', key, 'n') or '', '%S+') do names[#names + 1] = name end
  if #names ~= E[MEMBERS] then spoilt() end
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
  for from = 1, #fields, 4000 do -- unpack takes no more than some 8000
    for i, text in ipairs(redis.call('HMGET', key, unpack(fields, from, min(#fields, from + 3999)))) do
      if text then members[missing[from + i - 1]] = parts(text, SLOTS) end
    end
  end
end

-- between counts the calls of spans from first to last.
local function between(spans, first, last)
  local n = 0
  for i = 1, #spans, 2 do
    local a, b = max(spans[i], first), min(spans[i + 1], last)
    if a <= b then n = n + b - a + 1 end
  end
  return n
end

-- mark says of a slot whether it is held: '1', or '0'. As the slots of many change in one
-- step, they are a list until its end. No slot below LOWEST is free.
local marks, lowest = nil, 1
local function mark(n, as)
  if not (n >= 1 and n <= 1048576) then spoilt() end
  for i = #marks + 1, n do marks[i] = '0' end
  marks[n] = as
  if as == '0' then lowest = min(lowest, n) end
end
local function numbers()
  if marks then return end
  marks = {}
  for i = 1, #used do marks[i] = sub(used, i, i) end
end

-- reserved is what the others must not have because of a member that is missed, besides
-- what it is lent: the rest of its share.
local function reserved(m)
  if m[WITHHOLD] == 0 or elapsed - m[CONTACT] < floor(m[LEASE] * 3 / 4) then return 0 end
  return max(0, m[SHARE] - m[GRANTED] + m[RETURNED])
end

-- grant lends units to a member: first of what is withheld for it.
local function grant(m, units)
  local before = reserved(m)
  if m[FLAGS] % 2 == 1 then
    numbers()
    for g = m[GRANTED] + 1, m[GRANTED] + units do
      while marks[lowest] == '1' do lowest = lowest + 1 end
      local n, s, f = lowest, m[SLOTS], M[FENCES] + 1
      M[FENCES] = f
      mark(n, '1')
      s[#s + 1], s[#s + 2], s[#s + 3] = n, g, M[1] + floor(f / 1048576) .. '.' .. f % 1048576
    end
  end
  m[GRANTED], M[HELD] = m[GRANTED] + units, M[HELD] + units
  M[TOP] = max(M[TOP], m[GRANTED])
  if before > 0 then
    settled, eased, E[WITHHELD] = true, true, E[WITHHELD] - before + reserved(m)
  end
end

-- 4. Everybody is looked at if somebody may be due, leaves, or is configured otherwise.
if newer and me and (leaving or me[LIMITED] ~= limit) or M[CLOCK] >= E[NEAREST] or elapsed >= E[DOUBT] then
  list()
  fetch(names)
  if newer and me then me[LIMITED] = limit end
  local kept = {}
  E[WITHHELD], E[SHARES], E[NEAREST], E[DOUBT] = 0, 0, M[CLOCK] + 15 * lease, elapsed + 15 * lease
  for _, name in ipairs(names) do
    local m = members[name]
    if not m then spoilt() end
    local ends = m[SEEN] + floor(m[LEASE] * 8 / 5)
    local apart = m[WITHHOLD] > 0 and ends + floor(m[WITHHOLD] * 11 / 8) or 0
    local forgotten = max(m[SEEN] + 15 * m[LEASE], apart)
    local leaves = leaving and newer and name == id
    local held = m[GRANTED] - m[RETURNED]
    local away = m[FLAGS] >= 2
    local busy = held > 0 or m[STAND] > 0 or m[WITHHOLD] > 0
    local over = not away and busy and M[CLOCK] >= ends
    local out = leaves or (away or over or not busy) and M[CLOCK] >= forgotten
    if over or out then
      if not leaves then E[RECLAIMED] = E[RECLAIMED] + held end
      if not away then m[FLAGS], away = m[FLAGS] + 2, true end
      if #m[SLOTS] > 0 then numbers() end
      for i = 1, #m[SLOTS], 3 do mark(m[SLOTS][i], '0') end
      M[HELD], M[INUSE] = M[HELD] - held, M[INUSE] - m[RUNS]
      M[WAITING], M[QUEUED] = M[WAITING] - m[WAITS], M[QUEUED] - m[STAND]
      m[RETURNED], m[NEXT], m[RUNS], m[WAITS], m[STAND] = m[GRANTED], m[HEARD] + 1, 0, 0, 0
      m[SLOTS], m[SPANS], dirty[name] = {}, {}, true
    end
    if out then
      gone[#gone + 1], gone[#gone + 2], members[name], named = 'i' .. name, 'h' .. name, false, true
    else
      kept[#kept + 1] = name
      E[LOW] = #kept == 1 and m[LIMITED] or min(E[LOW], m[LIMITED])
      if away and M[CLOCK] >= apart and m[SHARE] > 0 then m[SHARE], dirty[name] = 0, true end
      if m[WITHHOLD] > 0 then
        E[SHARES], E[WITHHELD] = E[SHARES] + m[SHARE], E[WITHHELD] + reserved(m)
        local doubt = m[CONTACT] + floor(m[LEASE] * 3 / 4)
        if elapsed < doubt then E[DOUBT] = min(E[DOUBT], doubt) end
      end
      local due = forgotten
      if away and m[SHARE] > 0 then due = apart elseif not away and busy then due = ends end
      E[NEAREST] = min(E[NEAREST], due)
    end
  end
  names, E[MEMBERS], settled, me = kept, #kept, true, members[id] or nil
  M[CURSOR] = M[HEAD]
  if named and M[CLOCK] >= E[LEARN] then news[#news + 1], news[#news + 2] = key, 'n ' .. #names end
end

-- 5. One that knows of an older epoch shows that data was lost. Who is not known joins;
-- its figures begin above all that it may have heard in this epoch.
local known = me and true
if newer and epoch ~= 0 and epoch < E[EPOCH] then
  if E[COLD] ~= NOTCOLD and M[CLOCK] < giveUp then
    settled, E[COLD], E[LEARN] = true, NOTCOLD, M[CLOCK] + giveUp
  elseif M[CLOCK] < E[LEARN] and E[LEARN] < giveUp then
    settled, E[LEARN] = true, giveUp
  end
end
if not me and not leaving then
  list()
  for _, name in ipairs(names) do if name == id then spoilt() end end
  local heard, top = standing[#standing] or 0, M[TOP]
  me = {0, top, top, top, top, 0, 0, 0, heard, heard + 1, 0, 0, 0, 0, M[CLOCK], lease, limit, 0, 0, 0, fenced and 1 or 0, {}, {}}
  members[id] = me
  names[#names + 1] = id
  E[LOW] = #names == 1 and limit or min(E[LOW], limit)
  settled, named, E[MEMBERS] = true, true, #names
  if M[CLOCK] >= E[LEARN] then news[#news + 1], news[#news + 2] = key, 'n ' .. #names end
end

-- 6. A cold start ends as soon as everybody who is subscribed has spoken. That cannot be
-- known in a Redis Cluster, whose subscribers may be on any node.
if E[COLD] == STRANGERS and M[CLOCK] < E[LEARN] then
  list()
  local channels, n = {key}, nil
  for _, name in ipairs(names) do channels[#channels + 1] = key .. ':' .. name end
  if not subscribers and not find(info, 'redis_mode:cluster', 1, true) then
    for from = 1, #channels, 4000 do
      local counts = redis.pcall('PUBSUB', 'NUMSUB', unpack(channels, from, min(#channels, from + 3999)))
      if counts.err then
        n = nil
        break
      end
      for i = 2, #counts, 2 do n = n and n - counts[i] or counts[i] end
    end
  elseif subscribers and subscribers ~= '?' then
    local is = {}
    n = 0
    for name in string.gmatch(subscribers, '%S+') do is[key .. ':' .. name], n = true, n + 1 end
    for i = 2, #channels do if is[channels[i]] then n = n - 1 end end
  end
  if n and n <= 0 then settled, E[COLD], E[LEARN] = true, WATCHED, M[CLOCK] end
end
local learning = M[CLOCK] < E[LEARN]

-- 7. The limit in force: the override with the highest version, of the same version the
-- lower one; without one the lowest that a member is configured with.
if newer and (version > E[VERSION] or version == E[VERSION] and override < E[OVERRIDE]) then
  settled, E[VERSION], E[OVERRIDE] = true, version, max(-1, override)
  E[UNTIL] = lasts > 0 and override >= 0 and wall + lasts or 0
end
if E[UNTIL] > 0 and wall >= E[UNTIL] then settled, E[OVERRIDE], E[UNTIL] = true, -1, 0 end
local inForce = E[OVERRIDE] >= 0 and E[OVERRIDE] or E[LOW]
if inForce ~= E[LIMIT] then
  if E[LIMIT] >= 0 then news[#news + 1], news[#news + 2] = key, 'l ' .. inForce end
  settled, E[LIMIT], M[CURSOR] = true, inForce, M[HEAD]
end

-- 8. What the speaker holds, what of its share is withheld, and which of its calls stand.
local missed = 0
local speaks = me and newer
local share = floor(E[LIMIT] / max(1, E[MEMBERS]))
if speaks then
  dirty[id] = true
  local was, kept, theirs = me[FLAGS] >= 2, reserved(me), E[SHARES]
  if me[WITHHOLD] > 0 then theirs = theirs - me[SHARE] end
  if was then me[FLAGS], M[CURSOR] = me[FLAGS] - 2, M[HEAD] end
  if me[PASSED] > 0 then me[PASSED], M[CURSOR] = 0, M[HEAD] end
  me[SEQ], me[SEEN], me[LEASE], me[WITHHOLD] = seq, M[CLOCK], lease, withhold
  local before, own, numbered = me[GRANTED] - me[RETURNED], 0, me[FLAGS] == 1
  if epoch == E[EPOCH] then
    if numbered then -- those that it has heard of and does not list are free
      numbers()
      local listed, kept = {}, {}
      for i = 1, #slots, 2 do listed[slots[i]] = slots[i + 1] end
      for i = 1, #me[SLOTS], 3 do
        local n, g, f = me[SLOTS][i], me[SLOTS][i + 1], me[SLOTS][i + 2]
        if g > granted or listed[n] == f then
          kept[#kept + 1], kept[#kept + 2], kept[#kept + 3] = n, g, f
        else
          mark(n, '0')
          me[RETURNED] = me[RETURNED] + 1
        end
      end
      own, me[SLOTS] = #slots / 2, kept
    else
      own = granted - min(granted, returned)
      me[RETURNED] = max(me[RETURNED], min(returned, me[GRANTED]))
    end
    me[ACKED] = max(me[ACKED], min(granted, me[GRANTED]))
  elseif epoch ~= 0 then
    own = claim
  end
  if was then me[ACKED] = me[GRANTED] end
  if learning and epoch ~= 0 then -- it surely holds what it claims
    if numbered then
      numbers()
      for i = 1, min(2 * claim, #slots), 2 do
        local n, s = slots[i], me[SLOTS]
        if n >= 1 and n <= 65536 and marks[n] ~= '1' then
          mark(n, '1')
          me[GRANTED] = me[GRANTED] + 1
          me[ACKED] = me[GRANTED]
          s[#s + 1], s[#s + 2], s[#s + 3] = n, me[GRANTED], slots[i + 1]
        end
      end
    elseif claim > me[GRANTED] - me[RETURNED] then
      me[GRANTED] = me[RETURNED] + claim
      me[ACKED] = me[GRANTED]
    end
    M[TOP] = max(M[TOP], me[GRANTED])
  end
  local held = me[GRANTED] - me[RETURNED]
  M[HELD] = M[HELD] + held - before
  missed = max(0, own - held)
  if missed > 0 and (was or not known) then settled, E[LOST] = true, E[LOST] + missed end

  M[INUSE], M[WAITING] = M[INUSE] + inUse - me[RUNS], M[WAITING] + waiting - me[WAITS]
  me[RUNS], me[WAITS], me[OLDEST] = inUse, waiting, oldest
  -- Calls that it believes to be known and are not join anew, with all others.
  if #standing > 0 and standing[#standing] > me[HEARD] then
    me[HEARD], me[NEXT] = standing[#standing], standing[#standing] + 1
  end
  -- The calls that stand, but for those that only ask, in order.
  local spans, last = {}, 0
  for i = 1, #standing, 2 do
    local a, b = max(standing[i], last + 1), standing[i + 1]
    if a <= b then
      if last > 0 and a == last + 1 then spans[#spans] = b else spans[#spans + 1], spans[#spans + 2] = a, b end
      last = b
    end
  end
  for i = 1, #arrived, 3 do
    if arrived[i + 2] > 0 then
      local a, b = max(arrived[i], last + 1), arrived[i] + arrived[i + 1] - 1
      if a <= b then
        if last > 0 and a == last + 1 then spans[#spans] = b else spans[#spans + 1], spans[#spans + 2] = a, b end
        last = b
      end
    end
  end
  me[SPANS] = spans
  local stand = between(spans, me[NEXT], me[HEARD])
  M[QUEUED], me[STAND] = M[QUEUED] + stand - me[STAND], stand

  if withhold > 0 then share = min(share, max(0, E[LIMIT] - theirs)) end
  share = min(max(share, minShare), E[LIMIT])
  me[SHARE] = max(may, share)
  if contact == 0 then
    me[CONTACT] = elapsed - floor(lease * 3 / 4)
  elseif contact < 0 or epoch ~= E[EPOCH] then
    me[CONTACT] = elapsed
  else
    me[CONTACT] = min(contact, elapsed)
  end
  local keeps = reserved(me)
  if keeps < kept then M[CURSOR] = M[HEAD] end
  if withhold > 0 then
    theirs = theirs + me[SHARE]
    local doubt = me[CONTACT] + floor(lease * 3 / 4)
    if elapsed < doubt and doubt < E[DOUBT] then settled, E[DOUBT] = true, doubt end
  end
  if keeps ~= kept or theirs ~= E[SHARES] then
    settled, E[WITHHELD], E[SHARES] = true, E[WITHHELD] - kept + keeps, theirs
  end

  -- Units that run there and are not lent come first: they run already, on what is
  -- withheld for them.
  local n = min(spare, E[LIMIT] - M[HELD] - E[WITHHELD] + keeps)
  if n > 0 and not learning then grant(me, n) end
end

-- 9. What is free goes to whoever is first in line.
if not learning and M[CURSOR] <= M[TAIL] and E[LIMIT] - M[HELD] - E[WITHHELD] > 0 then
  local place, tail, ahead, kept, looked, start = M[CURSOR], M[TAIL], M[CURSOR], nil, 0, M[CURSOR]
  local passed, told = {}, {}
  while place <= tail and looked < 32 do
    local free = E[LIMIT] - M[HELD] - E[WITHHELD]
    if free <= 0 then break end
    if place >= ahead then -- read on: as many tickets as may be served, and their members
      local fields, wanted = {}, {}
      ahead = min(tail, place + min(free, 31)) + 1
      for p = place, ahead - 1 do fields[#fields + 1] = 't' .. p end
      for i, text in ipairs(redis.call('HMGET', key, unpack(fields))) do
        local t = text and parts(text, 3)
        line[place + i - 1] = t
        if t then wanted[#wanted + 1] = t[1] end
      end
      fetch(wanted)
    end
    local t = line[place]
    local m = t and members[t[1]]
    local stand = m and between(m[SPANS], m[NEXT], min(t[2], m[HEARD])) or 0
    local more, done = true, true
    if stand > 0 then
      local name, cost, calls = t[1], t[3], 0
      local before = passed[name] or (m[PASSED] > 0 and m[PASSED] < start)
      looked = looked + 1
      if not before and cost <= E[LIMIT] - E[WITHHELD] then
        local since = m[GRANTED] - m[TOLD]
        if speaks and name == id then
          calls = stand
        elseif since == 0 then
          calls = max(1, floor(4 / cost))
        else
          calls = max(0, floor((4 - since) / cost))
        end
      end
      local n = min(stand, calls, floor((free + reserved(m)) / cost))
      if n > 0 then
        grant(m, n * cost)
        local from, left = m[NEXT], n
        for i = 1, #m[SPANS], 2 do
          local a, b = max(m[SPANS][i], from), m[SPANS][i + 1]
          if a <= b then
            if left <= b - a + 1 then
              m[NEXT] = a + left
              break
            end
            left = left - (b - a + 1)
          end
        end
        m[STAND], M[QUEUED], dirty[name] = m[STAND] - n, M[QUEUED] - n, true
        if not (speaks and name == id) and not told[name] then
          told[name] = true
          told[#told + 1] = name
        end
      end
      done = n == stand
      more = done or n == calls
      if more and not done then
        if not before then m[PASSED], dirty[name] = place, true end
        passed[name] = true
      elseif done and m[PASSED] == place then
        m[PASSED], dirty[name] = 0, true
      end
    end
    if not done then
      kept = kept or place
    elseif t then
      gone[#gone + 1], line[place] = 't' .. place, false
      if m and m[LAST] == place then m[LAST], dirty[t[1]] = 0, true end
    end
    if not more then break end
    place = place + 1
  end
  if M[CURSOR] == M[HEAD] then M[HEAD] = kept or place end
  M[CURSOR] = place
  for _, name in ipairs(told) do
    local m, text = members[name], nil
    for i = 1, #m[SLOTS], 3 do
      if m[SLOTS][i + 1] > m[ACKED] then
        local s = m[SLOTS][i] .. ':' .. m[SLOTS][i + 2]
        text = text and text .. ',' .. s or s
      end
    end
    news[#news + 1] = key .. ':' .. name
    news[#news + 1] = 'g ' .. M[1] .. ' ' .. m[GRANTED] .. ' ' .. (text or '-')
  end
end

-- 10. Calls that joined the speaker's line are let in if nobody waits that could be
-- served, or get a ticket; those that only ask, whose cost is below 0, do not.
if speaks then
  for i = 1, #arrived, 3 do
    local first, last, cost = max(arrived[i], me[HEARD] + 1), arrived[i] + arrived[i + 1] - 1, arrived[i + 2]
    local ask = cost < 0
    if ask then cost = -cost end
    if last > me[HEARD] then
      local calls = last - first + 1
      if not learning and me[STAND] == 0 and (M[QUEUED] == 0 or M[CURSOR] > M[TAIL]) then
        local n = min(calls, floor(max(0, E[LIMIT] - M[HELD] - E[WITHHELD] + reserved(me)) / cost))
        if n > 0 then grant(me, n * cost) end
        calls, first = calls - n, first + n
      end
      if calls > 0 and not ask then
        if me[STAND] == 0 then me[NEXT] = first end
        if me[LAST] ~= M[TAIL] or me[COST] ~= cost or me[LAST] < M[HEAD] then M[TAIL] = M[TAIL] + 1 end
        line[M[TAIL]] = {id, last, cost, true}
        me[LAST], me[COST] = M[TAIL], cost
        me[STAND], M[QUEUED] = me[STAND] + calls, M[QUEUED] + calls
      end
      me[HEARD] = last
      if me[STAND] == 0 then me[NEXT] = last + 1 end
    end
  end
  local due = M[CLOCK] + 15 * lease
  if me[GRANTED] > me[RETURNED] or me[STAND] > 0 or withhold > 0 then due = M[CLOCK] + giveUp end
  if due < E[NEAREST] then settled, E[NEAREST] = true, due end
end
if eased then M[CURSOR] = M[HEAD] end

-- 11. A line that is mostly holes is moved together.
if M[TAIL] - M[HEAD] + 1 > 2 * M[QUEUED] + 256 then
  local head, tail, wanted = M[HEAD], M[TAIL], {}
  for from = head, tail, 500 do
    local fields = {}
    for p = from, min(tail, from + 499) do fields[#fields + 1] = 't' .. p end
    for i, text in ipairs(redis.call('HMGET', key, unpack(fields))) do
      local p = from + i - 1
      if line[p] == nil then line[p] = text and parts(text, 3) end
      if line[p] then wanted[#wanted + 1] = line[p][1] end
    end
  end
  fetch(wanted)
  for p = head, tail do
    local t = line[p]
    if t then
      local m = members[t[1]]
      gone[#gone + 1], line[p] = 't' .. p, false
      if m and between(m[SPANS], m[NEXT], min(t[2], m[HEARD])) > 0 then
        M[TAIL] = M[TAIL] + 1
        line[M[TAIL]] = {t[1], t[2], t[3], true}
        if m[PASSED] > 0 then m[PASSED], dirty[t[1]] = 0, true end
      end
    end
  end
  M[HEAD], M[CURSOR] = tail + 1, tail + 1
end

-- 12. The answer. M[CALM] is who was told that nobody else waits: once somebody does, or
-- more is out than may be, they hear of it.
if not speaks then
  local apart = me and me[WITHHOLD] > 0
  if withhold > 0 then share = min(share, max(0, E[LIMIT] - E[SHARES] + (apart and me[SHARE] or 0))) end
  share = min(max(share, minShare), E[LIMIT])
  if apart then share = min(share, me[SHARE]) end
end
local contended = M[QUEUED] > (me and me[STAND] or 0) or E[LIMIT] - M[HELD] - E[WITHHELD] < 0
if speaks then
  me[TOLD] = me[GRANTED]
  if (me[STAND] > 0 or E[LIMIT] - M[HELD] - E[WITHHELD] < 0) and M[CALM] ~= '' and M[CALM] ~= id then
    news[#news + 1], news[#news + 2], M[CALM] = key, 'c', ''
  end
  if not contended then
    M[CALM] = (M[CALM] == '' or M[CALM] == id) and id or '*'
  elseif M[CALM] == id then
    M[CALM] = ''
  end
end
local mine, holds = me or {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {}
if me then
  for i = 1, #me[SLOTS], 3 do holds[#holds + 1], holds[#holds + 2] = me[SLOTS][i], me[SLOTS][i + 2] end
end
local answer = pack({E[EPOCH], mine[GRANTED], mine[RETURNED], mine[HEARD], mine[STAND], missed,
  E[LIMIT], E[VERSION], E[OVERRIDE], E[UNTIL] > 0 and E[UNTIL] - wall or 0,
  M[HELD], M[INUSE], M[WAITING], E[MEMBERS], share, contended and 1 or 0, max(0, E[LEARN] - M[CLOCK]),
  E[RECLAIMED], E[LOST], elapsed, holds})

-- 13. Nothing was written or published until here.
if marks then
  local last = #marks
  while marks[last] == '0' do last = last - 1 end
  used = table.concat(marks, '', 1, last)
end
local renew = wipe or wall - E[RENEWED] >= 3600000 or wall < E[RENEWED]
if renew then E[RENEWED], settled = wall, true end
local sets = {'m', sub(pack(M), 2)}
if settled then sets[3], sets[4] = 'e', sub(pack(E), 4) end
for name in pairs(dirty) do
  if members[name] then sets[#sets + 1], sets[#sets + 2] = 'i' .. name, sub(pack(members[name]), 4) end
end
for p, t in pairs(line) do
  if t and t[4] then sets[#sets + 1], sets[#sets + 2] = 't' .. p, pack(t[1], t[2], t[3]) end
end
if me and not known then sets[#sets + 1], sets[#sets + 2] = 'h' .. id, host end
if named and #names > 0 then sets[#sets + 1], sets[#sets + 2] = 'n', table.concat(names, ' ') end
if named and #names == 0 then gone[#gone + 1] = 'n' end
if used ~= wasUsed and used ~= '' then sets[#sets + 1], sets[#sets + 2] = 'u', used end
if used ~= wasUsed and used == '' then gone[#gone + 1] = 'u' end
if wipe then
  redis.call('DEL', key)
else
  for from = 1, #gone, 4000 do redis.call('HDEL', key, unpack(gone, from, min(#gone, from + 3999))) end
end
for from = 1, #sets, 4000 do redis.call('HSET', key, unpack(sets, from, min(#sets, from + 3999))) end
if renew then redis.call('PEXPIRE', key, 604800000) end
for i = 1, #news, 2 do redis.call('PUBLISH', news[i], news[i + 1]) end
return answer
