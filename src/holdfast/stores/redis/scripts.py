"""The scripts that the Redis store runs on the server, and how they are called.

Each sees and changes everything at one moment, and names only keys of one slot.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from holdfast.stores.shared.tags import VALUES

RedisCommand = tuple[Any, ...]
"""A command of Redis and its arguments."""


class Script:
    """A script, known to the server by the SHA-1 of its text once it has seen it."""

    def __init__(self, text: str, frees: bool = False) -> None:
        # What frees memory has to run when there is none: a server would else refuse its ZADD.
        self.text = f"#!lua flags=allow-oom\n{text}" if frees else text
        self.sha = hashlib.sha1(self.text.encode()).hexdigest()  # noqa: S324  (how Redis names scripts)

    def __call__(self, keys: list[bytes], *args: Any) -> ScriptCall:
        return ScriptCall(self, keys, args)


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A script to be run with these keys and arguments."""

    script: Script
    keys: list[bytes]
    args: tuple[Any, ...]

    def by_sha(self) -> RedisCommand:
        """Return the command for a server that has seen the script."""
        return ("EVALSHA", self.script.sha, len(self.keys), *self.keys, *self.args)

    def by_text(self) -> RedisCommand:
        """Return that for one that has not, for instance because it was started again."""
        return ("EVAL", self.script.text, len(self.keys), *self.keys, *self.args)


_NOW = """
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function number(n) return string.format('%.0f', n) end
"""

CLOCK = Script(f"{_NOW} return number(now())")
"""Microseconds since 1970 on the node that keeps the records."""

_FILE = (
    f"local VALUES = {VALUES}"
    + """
-- A session is filed under a number for each tag, or for its name alone: see shared/tags.py.
-- Tags are the places of these numbers among the arguments, of the name before that of the value.
local function file(TAGS, FILED, who, tags)
  for _, tag in ipairs(tags) do
    local named, valued = ARGV[tag[1]], ARGV[tag[2]]
    if not redis.call('ZSCORE', TAGS, named .. who)
      and not (valued and redis.call('ZSCORE', TAGS, valued .. who)) then
      local known, values = redis.call('HGET', FILED, who) or '', 0
      for i = 1, valued and #known or 0, 8 do
        if string.sub(known, i, i + 3) == string.sub(valued, 1, 4) then values = values + 1 end
      end
      local as = (not valued or values >= VALUES) and named or valued
      redis.call('ZADD', TAGS, 0, as .. who)
      redis.call('HSET', FILED, who, known .. as)
    end
  end
end
"""
)

WRITE = Script(
    _NOW
    + _FILE
    + """
-- Keys 1 to 10 are always these. The plan names other keys, and values, by their number; the
-- names of chunks are the last values, followed by their data where that is to be written, too.
local FORMAT, CHUNKS, TOTALS, LAST, NOTES, EXPIRY, WAKE, TOUCHED, TAGS, FILED =
  unpack(KEYS, 1, 10)
local plan = cmsgpack.unpack(ARGV[1])
local format = redis.call('GET', FORMAT)
if format and format ~= plan.format then return {'format'} end

-- 1. Refuse, before anything is written. What is there with this very token was written by this
--    call: an earlier attempt went well, and only its answer was lost.
local taken
for place, own in ipairs(plan.own) do
  local key, value, _, numbered = unpack(own)
  local found = redis.call('GET', KEYS[key])
  if found then
    local mine = ARGV[value]
    if numbered then
      found = string.sub(found, 18)
    else -- the token of a record; it may have been given a place since
      found, mine = string.sub(found, 4, 13), string.sub(mine, 4, 13)
    end
    if found == mine then return {'done', place} end
    taken = taken or place
  end
end
if plan.unless and redis.call('EXISTS', KEYS[plan.unless]) == 1 then return {'fenced'} end
if taken then return {'taken', taken} end
for _, need in ipairs(plan.needs) do
  if redis.call('EXISTS', KEYS[need[1]]) == 0 then return {need[2]} end
end
-- What its session has last; the members of a sorted set with equal scores are in their own order.
local head = plan.session and redis.call('ZREVRANGE', KEYS[plan.session], 0, 0)[1]
if plan.follows and string.sub(head or '', 17) ~= ARGV[plan.follows] then return {'head'} end
local first, last = plan.first, plan.first + plan.chunks - 1
if plan.mode == 'end' then
  for i = first, last do
    local written = redis.call('ZSCORE', CHUNKS, ARGV[i])
    if not written or written == '0' then return {'again'} end
  end
end

-- 2. Chunks are listed with the time, those written before anew, so that gc spares them.
local time = now()
local written = number(time)
for from = first, last, 500 do
  local dated = {}
  for i = from, math.min(from + 499, last) do
    dated[#dated + 1] = written
    dated[#dated + 1] = ARGV[i]
  end
  redis.call('ZADD', CHUNKS, unpack(dated))
end
if plan.mode == 'begin' then return {'ok', written} end
if plan.mode == 'whole' and plan.chunks > 0 then
  local keys, head = #KEYS - plan.chunks - first + 1, struct.pack('>I8', time)
  local bodies = {}
  for i = first, last do
    bodies[#bodies + 1] = KEYS[keys + i]
    bodies[#bodies + 1] = head .. ARGV[i + plan.chunks]
  end
  redis.call('MSET', unpack(bodies))
end

-- 3. What leads to the record.
if not format then redis.call('SET', FORMAT, plan.format) end
local stamp
if plan.session then
  -- It comes behind all of its session, or behind those it was told to: past the last of these
  -- by a microsecond where its own time is not later. 16 digits are too many for one number.
  local last = head
  if plan.behind then last = ARGV[plan.behind] end
  stamp = string.sub(ARGV[plan.place], 1, 16)
  if last and last ~= '' and last >= ARGV[plan.place] then
    local high, low = tonumber(string.sub(last, 1, 8), 16), tonumber(string.sub(last, 9, 16), 16)
    low = low + 1
    if low == 4294967296 then high, low = high + 1, 0 end
    stamp = string.format('%08x%08x', high, low)
  end
end
for _, entry in ipairs(plan.entries) do
  local key, score, value, at = unpack(entry)
  local member = ARGV[value]
  if at >= 0 then member = string.sub(member, 1, at) .. stamp .. string.sub(member, at + 17) end
  redis.call('ZADD', KEYS[key], score, member)
end
if plan.session then
  local newest = redis.call('ZREVRANGE', KEYS[plan.session], 0, 0)[1]
  if newest ~= head then
    if head then redis.call('ZREM', TOUCHED, head .. '\\0' .. ARGV[plan.who]) end
    redis.call('ZADD', TOUCHED, 0, newest .. '\\0' .. ARGV[plan.who])
  end
  file(TAGS, FILED, ARGV[plan.who], plan.tags)
end
if plan.size then redis.call('HINCRBY', TOTALS, 'size', plan.size) end

-- 4. Notes, each with the next place: microseconds, and a count within one.
local places = {}
if #plan.notes > 0 then
  local seq, tie = redis.call('GET', LAST), 0
  for _, note in ipairs(plan.notes) do
    local own, order, scope, key, expires = unpack(note)
    if seq then
      local before = tonumber(string.sub(seq, 1, 14), 16)
      if before >= time then
        time, tie = before, tonumber(string.sub(seq, 15), 16) + 1
        if tie == 1024 then time, tie = time + 1, 0 end
      end
    end
    seq = string.format('%014x%03x', time, tie)
    places[own] = seq
    local name = seq .. ARGV[scope] .. '\\0' .. ARGV[key]
    redis.call('ZADD', KEYS[order], 0, seq .. ARGV[key])
    redis.call('ZADD', NOTES, 0, name)
    if expires ~= '' then redis.call('ZADD', EXPIRY, expires, 'n' .. name) end
    -- Those who wait for a name, not for a checkpoint, are woken by this stream.
    if string.sub(ARGV[scope], 1, 1) == '/' then
      redis.call('XADD', WAKE, 'MAXLEN', '~', 100, '*', 'seq', seq)
    end
  end
  redis.call('SET', LAST, seq)
end

-- 5. The record and the notes themselves.
for place, own in ipairs(plan.own) do
  local key, value, expires = unpack(own)
  value = (places[place] or '') .. ARGV[value]
  if place == 1 and stamp and stamp ~= string.sub(ARGV[plan.place], 1, 16) then
    -- One element more says the place, as the time in the record does not.
    local more = string.char(0xdc, 0, string.byte(value, 3) + 1)
    value = more .. string.sub(value, 4) .. string.char(0xb0) .. stamp
  end
  if expires == '' then
    redis.call('SET', KEYS[key], value)
  else
    redis.call('SET', KEYS[key], value, 'PXAT', expires)
  end
end
return {'ok', written}
"""
)
"""Keeps a record, chunks and notes, all or nothing; or only enters chunks that are about to come.

Answers ok and the time, done (by an earlier attempt), fenced, taken (and by which of its own
keys), head (something else is last in its session), again (gc took one of its chunks), or the word
for what it needs and is not there.
"""

REMOVE = Script(
    """
local RECORD, ALL, IDS, AGENT, SESSION, CHILDREN, TARGETS, SESSIONS, AGENTS, EXPIRY, TOTALS,
  TOUCHED, TAGS, FILED = unpack(KEYS)
local value, id, place, child, target, session, agent, expiry, size = unpack(ARGV)

-- An expired record may be gone already; its entry says whether this is its turn.
if value == '' then
  if redis.call('ZREM', EXPIRY, expiry) == 0 then return 0 end
elseif redis.call('GET', RECORD) ~= value then
  return 0
else
  redis.call('ZREM', EXPIRY, expiry)
end
redis.call('DEL', RECORD)
local last = redis.call('ZREVRANGE', SESSION, 0, 0)[1]
redis.call('ZREM', ALL, place)
redis.call('ZREM', IDS, id)
redis.call('ZREM', AGENT, place)
redis.call('ZREM', SESSION, place)
redis.call('ZREM', CHILDREN, child)
redis.call('ZREM', TARGETS, target)
local newest = redis.call('ZREVRANGE', SESSION, 0, 0)[1]
if newest ~= last then
  redis.call('ZREM', TOUCHED, last .. '\\0' .. session)
  if newest then redis.call('ZADD', TOUCHED, 0, newest .. '\\0' .. session) end
end
if not newest then
  redis.call('ZREM', SESSIONS, session)
  redis.call('ZREM', AGENTS, agent)
  local known = redis.call('HGET', FILED, session) or ''
  for i = 1, #known, 8 do redis.call('ZREM', TAGS, string.sub(known, i, i + 7) .. session) end
  redis.call('HDEL', FILED, session)
end
redis.call('HINCRBY', TOTALS, 'size', size)
redis.call('HINCRBY', TOTALS, 'removed', 1)
return 1
""",
    frees=True,
)
"""Removes a record with everything that leads to it, if it is still the one that was read."""

FENCE = Script(
    """
local FORMAT, FILING = unpack(KEYS)
local format = redis.call('GET', FORMAT)
for i = 2, #ARGV do
  if format == ARGV[i] then
    redis.call('SET', FORMAT, ARGV[1])
    redis.call('SET', FILING, '')
  end
end
return {redis.call('GET', FORMAT), redis.call('GET', FILING)}
"""
)
"""Has an older format end, whose scripts would not file sessions: from here on they fail.

Answers the format, and up to which record sessions are filed; nothing if all are.
"""

REFILE = Script(
    _FILE
    + """
local TOUCHED, TAGS, FILED, FILING = unpack(KEYS, 1, 4)
for i, session in ipairs(cmsgpack.unpack(ARGV[3])) do
  local newest = redis.call('ZREVRANGE', KEYS[4 + i], 0, 0)[1]
  if newest then
    local who = ARGV[session[1]]
    redis.call('ZADD', TOUCHED, 0, newest .. '\\0' .. who)
    file(TAGS, FILED, who, session[2])
  end
end
if redis.call('GET', FILING) == ARGV[1] then redis.call('SET', FILING, ARGV[2]) end
"""
)
"""Files some sessions of before, and notes up to which record that is done.

A session that has records is filed as touched by its newest, or is not filed at all: so it may be
filed twice, and while others save to it.
"""

FORGET = Script(
    """
local NOTE, ORDER, NOTES, EXPIRY = unpack(KEYS)
local seq, scope, key = unpack(ARGV)
local name = seq .. scope .. '\\0' .. key
redis.call('ZREM', ORDER, seq .. key)
redis.call('ZREM', NOTES, name)
redis.call('ZREM', EXPIRY, 'n' .. name)
-- A later note may have the same key, once this one has expired.
if redis.call('GETRANGE', NOTE, 0, 16) == seq then redis.call('DEL', NOTE) end
""",
    frees=True,
)
"""Removes a note."""

DOOM = Script(
    """
local found = {}
for i = 2, #ARGV do
  local written = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if written and tonumber(written) < tonumber(ARGV[1]) then
    redis.call('ZADD', KEYS[1], 0, ARGV[i])
    found[#found + 1] = ARGV[i]
  end
end
return found
""",
    frees=True,
)
"""Marks those chunks that were last written before a time: no commit relies on them any more."""

DROP = Script(
    """
local sizes = {}
for i, key in ipairs(KEYS) do
  local head = redis.call('GETRANGE', key, 0, 7)
  sizes[i] = -1
  if #head == 8 and struct.unpack('>I8', head) < tonumber(ARGV[1]) then
    sizes[i] = redis.call('STRLEN', key) - 8
    redis.call('UNLINK', key)
  end
end
return sizes
""",
    frees=True,
)
"""Removes chunks that were written before a time; answers the size of each, or -1 if it stays."""

SETTLE = Script(
    """
for _, name in ipairs(ARGV) do
  if redis.call('ZSCORE', KEYS[1], name) == '0' then redis.call('ZREM', KEYS[1], name) end
end
""",
    frees=True,
)
"""Strikes marked chunks off the list, but for those that a save has entered again since."""
