-- The twin of leases/item.py in PostgreSQL: the same names, the same answers; tests feed both the same operations.
--
-- One row per lock, never deleted: what is left after a release keeps the token. The waiters are columns of that row,
-- because under READ COMMITTED a statement that waited for a row lock sees the newest version of *that row* but of no
-- other: a waiter in a table of its own could be missed, and its wake-up lost.
--
-- Times are this server's clock, read after the row is locked.
--
-- A free lock is taken, and a held one given back or handed over, by single UPDATEs (postgres_calls.py), which do just
-- what the functions here would in half the time; these do everything.
--
-- {schema} and its like are filled in by postgres.py, which runs this file in one transaction, behind an advisory lock.

DO $$ BEGIN
    IF to_regnamespace({schema_text}) IS NULL THEN
        CREATE SCHEMA {schema};
    END IF;
    IF to_regtype({schema_text} || '.waiter') IS NULL THEN
        CREATE TYPE {schema}.waiter AS (
            ticket bigint, owner text COLLATE "C", attempt bigint, until timestamptz, entry bytea,
            backend integer     -- the process that serves its connection
        );
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
         WHERE reltype = to_regtype({schema_text} || '.waiter') AND attname = 'serial'
    ) THEN
        ALTER TYPE {schema}.waiter      -- its request; a serial of null: it is to be woken and asks by itself
            ADD ATTRIBUTE serial bigint, ADD ATTRIBUTE ttl interval, ADD ATTRIBUTE token bigint;
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
         WHERE reltype = to_regtype({schema_text} || '.waiter') AND attname = 'channel'
    ) THEN
        ALTER TYPE {schema}.waiter      -- where it is told what it is handed; null: it cannot be
            ADD ATTRIBUTE channel text;
    END IF;
    IF to_regtype({schema_text} || '.answer') IS NULL THEN
        CREATE TYPE {schema}.answer AS (
            grade text, token bigint, until timestamptz, smaller boolean, evidence bytea, ticket bytea,
            store_time timestamptz
        );
    END IF;
END $$;

-- Half of each page is left free, so that a new version of a row fits beside the old one and no index is touched.
CREATE TABLE IF NOT EXISTS {schema}.lease (
    name text COLLATE "C" PRIMARY KEY,
    token bigint NOT NULL,
    evidence bytea,
    until timestamptz,          -- of the holder; null: nobody holds, and what stands below is left over from the last
    owner text COLLATE "C",
    attempt bigint,
    ticket bigint,
    held_token bigint,          -- committed for this very grant; null while it is tentative
    entry bytea,
    waiters {schema}.waiter[]   -- those behind the first in line; null: there are none
) WITH (fillfactor = 50);

-- The first in line, a column for each of its words: to hand over is quick then. Its owner is null where nobody waits.
ALTER TABLE {schema}.lease
    ADD COLUMN IF NOT EXISTS first_ticket bigint,
    ADD COLUMN IF NOT EXISTS first_owner text COLLATE "C",
    ADD COLUMN IF NOT EXISTS first_attempt bigint,
    ADD COLUMN IF NOT EXISTS first_until timestamptz,
    ADD COLUMN IF NOT EXISTS first_entry bytea,
    ADD COLUMN IF NOT EXISTS first_backend integer,
    ADD COLUMN IF NOT EXISTS first_serial bigint,
    ADD COLUMN IF NOT EXISTS first_ttl interval,
    ADD COLUMN IF NOT EXISTS first_token bigint,
    ADD COLUMN IF NOT EXISTS first_channel text;

-- Of the waiter that it was last handed over to: an UPDATE can tell only what stands in the row when it is done.
ALTER TABLE {schema}.lease
    ADD COLUMN IF NOT EXISTS handed_serial bigint,
    ADD COLUMN IF NOT EXISTS handed_wait timestamptz,
    ADD COLUMN IF NOT EXISTS handed_channel text;

-- Before layout 3 the first in line stood among the others. It cannot be told where it is, so it is woken.
UPDATE {schema}.lease
   SET first_ticket = (waiters[1]).ticket, first_owner = (waiters[1]).owner, first_attempt = (waiters[1]).attempt,
       first_until = (waiters[1]).until, first_entry = (waiters[1]).entry, first_backend = (waiters[1]).backend,
       waiters = nullif(waiters[2:], '{}')
 WHERE first_owner IS NULL AND waiters IS NOT NULL;

-- Of a table that nobody has looked at yet, PostgreSQL assumes that it has ten pages. It has one, in which a lock is found
-- sooner without the index; autovacuum would notice, a minute later.
ANALYZE {schema}.lease;

-- One row: what this store is, and which run of the server it has last seen.
CREATE TABLE IF NOT EXISTS {schema}.store (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    layout integer NOT NULL,
    run bigint,                 -- when that run began; null before the first client
    durable boolean,            -- whether it had fsync on all the time
    t_max bigint NOT NULL DEFAULT 0,
    closed_until bigint NOT NULL DEFAULT 0
);

-- What layout 1 had, with other arguments than now.
DROP FUNCTION IF EXISTS {schema}.request(text, text, bigint, interval, interval, bigint, bigint, bytea);
DROP FUNCTION IF EXISTS
    {schema}.refused({schema}.lease, timestamptz, text, bigint, interval, bigint, bytea),
    {schema}.with_waiter({schema}.lease, text, bigint, timestamptz, bigint, bytea),
    {schema}.wake_first({schema}.waiter[]),
    {schema}.let_go({schema}.lease);

CREATE OR REPLACE FUNCTION {schema}.microseconds(moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT (date_part('epoch', moment) * 1000000)::bigint $$;

-- A server that may have forgotten leases (it was restarted, and some run of it had fsync off) gives none out until the
-- longest one that it can have forgotten is over. Answers for how many microseconds that is. Whoever enters leaves a
-- sign of life (see is_gone).
CREATE OR REPLACE FUNCTION {schema}.entered(asked_t_max bigint, fresh boolean) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    known {schema}.store;
    started CONSTANT bigint := {schema}.microseconds(pg_postmaster_start_time());
    synced CONSTANT boolean := current_setting('fsync') = 'on';
    store_time CONSTANT bigint := {schema}.microseconds(clock_timestamp());
BEGIN
    PERFORM pg_try_advisory_lock({sign_of_life}, pg_backend_pid());
    SELECT * INTO known FROM {schema}.store;
    IF known.run = started AND known.durable <= synced AND known.t_max >= asked_t_max AND NOT fresh THEN
        RETURN greatest(known.closed_until - store_time, 0);
    END IF;
    SELECT * INTO known FROM {schema}.store FOR UPDATE;
    known.t_max := greatest(known.t_max, asked_t_max);
    IF known.run = started THEN
        known.durable := known.durable AND synced;
    ELSIF synced AND coalesce(known.durable, true) THEN
        known.durable := true;
    ELSE
        known.durable := synced;
        known.closed_until := started + known.t_max;
        UPDATE {schema}.lease SET token = store_time WHERE token < store_time;
    END IF;
    IF fresh THEN
        known.closed_until := 0;
    END IF;
    UPDATE {schema}.store
       SET run = started, durable = known.durable, t_max = known.t_max, closed_until = known.closed_until;
    RETURN greatest(known.closed_until - store_time, 0);
END $$;

-- What the operations ask of an item, and what they change in it

-- The item as the operations see it: without what has run out, and with the whole line in waiters.
CREATE OR REPLACE FUNCTION {schema}.settled(item {schema}.lease, store_time timestamptz) RETURNS {schema}.lease
LANGUAGE plpgsql AS $$
DECLARE
    first {schema}.waiter;
BEGIN
    IF item.first_owner IS NOT NULL THEN
        first := (item.first_ticket, item.first_owner, item.first_attempt, item.first_until, item.first_entry,
                  item.first_backend, item.first_serial, item.first_ttl, item.first_token, item.first_channel);
        item.waiters := first || item.waiters;
    END IF;
    IF item.until IS NULL OR item.until <= store_time THEN
        item.owner := NULL;
        item.until := NULL;
    END IF;
    IF item.waiters IS NOT NULL THEN
        item.waiters := ARRAY(
            SELECT each FROM unnest(item.waiters) AS each WHERE each.until > store_time ORDER BY each.ticket, each.owner
        );
    END IF;
    RETURN item;
END $$;

CREATE OR REPLACE FUNCTION {schema}.holds(item {schema}.lease, asker text, asker_attempt bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(item.owner = asker AND item.attempt = asker_attempt, false) $$;

CREATE OR REPLACE FUNCTION {schema}.knows_later(item {schema}.lease, asker text, asker_attempt bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF item.owner = asker AND item.attempt > asker_attempt THEN
        RETURN true;
    END IF;
    IF item.waiters IS NULL THEN
        RETURN false;
    END IF;
    RETURN EXISTS (SELECT FROM unnest(item.waiters) AS each WHERE each.owner = asker AND each.attempt > asker_attempt);
END $$;

CREATE OR REPLACE FUNCTION {schema}.has_smaller(item {schema}.lease, asker text, asked_ticket bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF item.waiters IS NULL THEN
        RETURN false;
    END IF;
    RETURN EXISTS (
        SELECT FROM unnest(item.waiters) AS each
         WHERE each.owner <> asker
           AND (asked_ticket IS NULL OR (each.ticket, each.owner) < (asked_ticket, asker COLLATE "C"))
    );
END $$;

-- The entry with the largest ticket of anybody else; of equal ones the holder's, then the first in line's.
CREATE OR REPLACE FUNCTION {schema}.largest_ticket(item {schema}.lease, asker text) RETURNS bytea
LANGUAGE plpgsql AS $$
DECLARE
    largest {schema}.waiter;
BEGIN
    IF item.waiters IS NOT NULL THEN
        SELECT each.* INTO largest FROM unnest(item.waiters) AS each
         WHERE each.owner <> asker ORDER BY each.ticket DESC, each.owner LIMIT 1;
    END IF;
    IF item.owner <> asker AND item.ticket >= coalesce(largest.ticket, item.ticket) THEN
        RETURN item.entry;
    END IF;
    RETURN largest.entry;
END $$;

CREATE OR REPLACE FUNCTION {schema}.with_waiter(
    item {schema}.lease, asker text, asker_attempt bigint, until timestamptz, asked_ticket bigint, statement bytea,
    asked_serial bigint DEFAULT NULL, ttl interval DEFAULT NULL, guess bigint DEFAULT NULL
) RETURNS {schema}.lease
LANGUAGE plpgsql AS $$
DECLARE
    told_at CONSTANT text := {schema}.channel(asker);
    waiting {schema}.waiter
        := (asked_ticket, asker, asker_attempt, until, statement, pg_backend_pid(), asked_serial, ttl, guess, NULL);
BEGIN
    IF asked_serial IS NOT NULL AND octet_length(told_at) < 64 AND octet_length(asker) < 4000 THEN
        waiting.channel := told_at;
    END IF;
    IF {schema}.knows_later(item, asker, asker_attempt) THEN
        RETURN item;
    END IF;
    IF item.waiters IS NULL THEN
        item.waiters := ARRAY[waiting];
    ELSE
        item.waiters := ARRAY(
            SELECT each
              FROM unnest(ARRAY(SELECT other FROM unnest(item.waiters) AS other WHERE other.owner <> asker) || waiting)
                AS each
             ORDER BY each.ticket, each.owner LIMIT {most_waiters}
        );
    END IF;
    RETURN item;
END $$;

CREATE OR REPLACE FUNCTION {schema}.write(item {schema}.lease) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    first CONSTANT {schema}.waiter := item.waiters[1];
BEGIN
    UPDATE {schema}.lease
       SET token = item.token, evidence = item.evidence, owner = item.owner, attempt = item.attempt,
           until = item.until, ticket = item.ticket, held_token = item.held_token, entry = item.entry,
           first_ticket = first.ticket, first_owner = first.owner, first_attempt = first.attempt,
           first_until = first.until, first_entry = first.entry, first_backend = first.backend,
           first_serial = first.serial, first_ttl = first.ttl, first_token = first.token,
           first_channel = first.channel, waiters = nullif(item.waiters[2:], '{}')
     WHERE name = item.name;
END $$;

-- Waking somebody

-- Whether the connection of a waiter is gone: others would stand behind it until its time is up. Who enters takes an
-- advisory lock for as long as it is connected, because to try that costs next to nothing. Only where it is free (a
-- pooler may have lent another connection) the list of all connections is asked, which takes longer than the rest of a
-- release.
CREATE OR REPLACE FUNCTION {schema}.is_gone(backend integer) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN pg_try_advisory_xact_lock_shared({sign_of_life}, backend)
       AND NOT EXISTS (SELECT FROM pg_stat_get_activity(backend));
END $$;

CREATE OR REPLACE FUNCTION {schema}.without_gone(item {schema}.lease) RETURNS {schema}.lease
LANGUAGE plpgsql AS $$
BEGIN
    WHILE cardinality(item.waiters) > 0 AND {schema}.is_gone(item.waiters[1].backend) LOOP
        item.waiters := item.waiters[2:];
    END LOOP;
    RETURN item;
END $$;

-- Where a wake-up for an owner goes: the first 20 characters after the last slash are its process (leases/owner.py).
CREATE OR REPLACE FUNCTION {schema}.channel(owner text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT 'trinco_' || left(reverse(split_part(reverse(owner), '/', 1)), 20) $$;

-- Names that PostgreSQL would not take are left to their polls: somebody else's release must not fail over them.
-- pg_notify is assigned, here and below, because that is half as dear as a PERFORM.
CREATE OR REPLACE FUNCTION {schema}.wake(owner text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    nothing text;
BEGIN
    IF octet_length({schema}.channel(owner)) < 64 AND octet_length(owner) < 8000 THEN
        nothing := pg_notify({schema}.channel(owner), owner);
    END IF;
END $$;

-- The operations. A token asked for is null (the lease is not fenced), -1 (count by yourself) or a guess. Whoever counts
-- does not go below the clock: a server that came back without its last writes would give a token out again.
--
-- What is forgotten in a crash without harm (a release, a place in line) need not wait for the disk. A grant must, even
-- where this database asks for less: hence set_config, for this transaction, in each.

CREATE OR REPLACE FUNCTION {schema}.request(
    resource text, asker text, asker_attempt bigint,
    ttl interval, wait interval, asked_ticket bigint, guess bigint, statement bytea, asked_serial bigint
) RETURNS {schema}.answer
LANGUAGE plpgsql AS $$
DECLARE
    store_time timestamptz := clock_timestamp();
    item {schema}.lease;
    free boolean;
BEGIN
    SELECT * INTO item FROM {schema}.lease WHERE name = resource FOR NO KEY UPDATE;
    IF FOUND THEN
        store_time := clock_timestamp();
    ELSE
        item := {schema}.started(resource, store_time);
    END IF;
    item := {schema}.settled(item, store_time);
    free := item.owner IS NULL AND NOT {schema}.has_smaller(item, asker, asked_ticket);
    IF item.owner IS NULL AND NOT free THEN
        item := {schema}.without_gone(item);
        free := NOT {schema}.has_smaller(item, asker, asked_ticket);
    END IF;
    IF (free OR item.owner = asker) AND NOT {schema}.knows_later(item, asker, asker_attempt) THEN
        RETURN {schema}.granted(item, store_time, asker, asker_attempt, ttl, asked_ticket, guess, statement);
    END IF;
    RETURN {schema}.refused(
        item, store_time, asker, asker_attempt, ttl, wait, asked_ticket, guess, statement, asked_serial
    );
END $$;

-- A lock that nobody has asked for starts with a token that cannot have been given out before. If somebody else starts
-- it in the same moment, theirs stands.
CREATE OR REPLACE FUNCTION {schema}.started(resource text, store_time timestamptz) RETURNS {schema}.lease
LANGUAGE plpgsql AS $$
DECLARE
    item {schema}.lease;
BEGIN
    INSERT INTO {schema}.lease (name, token) VALUES (resource, {schema}.microseconds(store_time))
        ON CONFLICT DO NOTHING;
    SELECT * INTO STRICT item FROM {schema}.lease WHERE name = resource FOR NO KEY UPDATE;
    RETURN item;
END $$;

CREATE OR REPLACE FUNCTION {schema}.granted(
    item {schema}.lease, store_time timestamptz, asker text, asker_attempt bigint,
    ttl interval, asked_ticket bigint, guess bigint, statement bytea
) RETURNS {schema}.answer
LANGUAGE plpgsql AS $$
DECLARE
    setting text;
    answer {schema}.answer;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        setting := set_config('synchronous_commit', 'on', true);
    END IF;
    IF {schema}.holds(item, asker, asker_attempt) THEN
        item.until := greatest(store_time + ttl, item.until);
    ELSE
        item.until := store_time + ttl;
        item.held_token := NULL;
    END IF;
    item.owner := asker;
    item.attempt := asker_attempt;
    item.ticket := asked_ticket;
    item.entry := statement;
    IF item.waiters IS NOT NULL THEN
        item.waiters := ARRAY(
            SELECT each FROM unnest(item.waiters) AS each WHERE each.owner <> asker ORDER BY each.ticket, each.owner
        );
    END IF;
    answer.grade := 'committed';
    IF guess IS NOT NULL AND item.held_token IS NULL THEN
        IF guess < 0 THEN
            guess := greatest(item.token + 1, {schema}.microseconds(store_time));
        ELSIF guess <= item.token OR guess > {schema}.microseconds(store_time) + 3600000000 THEN
            guess := NULL;
        END IF;
        IF guess IS NULL THEN
            answer.grade := 'tentative';
            answer.evidence := item.evidence;
        ELSE
            item.token := guess;
            item.held_token := guess;
            item.evidence := statement;
        END IF;
    END IF;
    PERFORM {schema}.write(item);
    answer.token := item.held_token;
    answer.until := item.until;
    answer.smaller := {schema}.has_smaller(item, asker, asked_ticket);
    answer.ticket := {schema}.largest_ticket(item, asker);
    answer.store_time := store_time;
    RETURN answer;
END $$;

CREATE OR REPLACE FUNCTION {schema}.refused(
    item {schema}.lease, store_time timestamptz, asker text, asker_attempt bigint,
    ttl interval, wait interval, asked_ticket bigint, guess bigint, statement bytea, asked_serial bigint
) RETURNS {schema}.answer
LANGUAGE plpgsql AS $$
DECLARE
    setting text;
    waits CONSTANT boolean := asked_ticket IS NOT NULL AND wait > '0';
    answer {schema}.answer;
BEGIN
    setting := set_config('synchronous_commit', 'off', true);
    answer.grade := 'refused';
    answer.until := item.until;
    answer.smaller := {schema}.has_smaller(item, asker, asked_ticket);
    answer.ticket := {schema}.largest_ticket(item, asker);
    answer.store_time := store_time;
    IF waits AND NOT EXISTS (
        SELECT FROM unnest(item.waiters) AS each
         WHERE asked_serial IS NULL
           AND each.owner = asker AND each.attempt = asker_attempt AND each.ticket = asked_ticket
           AND 2 * (each.until - store_time) > wait AND each.backend = pg_backend_pid()
    ) THEN
        PERFORM {schema}.write(
            {schema}.with_waiter(
                item, asker, asker_attempt, store_time + wait, asked_ticket, statement, asked_serial, ttl, guess
            )
        );
    END IF;
    IF waits AND item.owner <> asker
       AND (asked_ticket, asker COLLATE "C") < (item.ticket, item.owner COLLATE "C") THEN
        PERFORM {schema}.wake(item.owner);  -- the holder must yield if it does not hold the whole yet
    END IF;
    RETURN answer;
END $$;

CREATE OR REPLACE FUNCTION {schema}.commit_token(
    resource text, asker text, asker_attempt bigint, asked_token bigint, statement bytea
) RETURNS {schema}.answer
LANGUAGE plpgsql AS $$
DECLARE
    setting text;
    item {schema}.lease;
    store_time timestamptz;
    answer {schema}.answer;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        setting := set_config('synchronous_commit', 'on', true);
    END IF;
    SELECT * INTO item FROM {schema}.lease WHERE name = resource FOR NO KEY UPDATE;
    store_time := clock_timestamp();
    item := {schema}.settled(item, store_time);
    answer := ('committed', asked_token, NULL, false, NULL, NULL, store_time);
    IF NOT {schema}.holds(item, asker, asker_attempt) THEN
        answer := ('gone', NULL, NULL, false, item.evidence, NULL, store_time);
    ELSIF item.held_token = asked_token THEN
        NULL;
    ELSIF asked_token <= item.token THEN
        answer := ('refused', NULL, NULL, false, item.evidence, NULL, store_time);
    ELSE
        item.token := asked_token;
        item.held_token := asked_token;
        item.evidence := statement;
        PERFORM {schema}.write(item);
        answer.smaller := {schema}.has_smaller(item, asker, item.ticket);
    END IF;
    RETURN answer;
END $$;

CREATE OR REPLACE FUNCTION {schema}.extend(resource text, asker text, asker_attempt bigint, ttl interval)
RETURNS {schema}.answer
LANGUAGE plpgsql AS $$
DECLARE
    setting text;
    store_time CONSTANT timestamptz := clock_timestamp();
    committed bigint;
    extended timestamptz;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        setting := set_config('synchronous_commit', 'on', true);
    END IF;
    UPDATE {schema}.lease SET until = greatest(until, store_time + ttl)
     WHERE name = resource AND owner = asker AND attempt = asker_attempt AND until > clock_timestamp()
    RETURNING held_token, until INTO committed, extended;
    IF FOUND THEN
        RETURN ('committed', committed, extended, false, NULL, NULL, store_time)::{schema}.answer;
    END IF;
    SELECT until INTO extended FROM {schema}.lease WHERE name = resource AND until > store_time;
    RETURN ('gone', NULL, extended, false, NULL, NULL, store_time)::{schema}.answer;
END $$;

CREATE OR REPLACE FUNCTION {schema}.yield(
    resource text, asker text, asker_attempt bigint, wait interval, asked_ticket bigint, statement bytea
) RETURNS {schema}.answer
LANGUAGE plpgsql AS $$
DECLARE
    item {schema}.lease;
    store_time timestamptz;
    grade text := 'gone';
BEGIN
    SELECT * INTO item FROM {schema}.lease WHERE name = resource FOR NO KEY UPDATE;
    store_time := clock_timestamp();
    item := {schema}.settled(item, store_time);
    IF {schema}.holds(item, asker, asker_attempt) THEN
        grade := 'done';
        item.owner := NULL;
        item.until := NULL;
        IF asked_ticket IS NOT NULL AND wait > '0' THEN
            item := {schema}.with_waiter(item, asker, asker_attempt, store_time + wait, asked_ticket, statement);
        END IF;
    END IF;
    PERFORM {schema}.pass_on(item, store_time);
    RETURN (grade, NULL, NULL, false, NULL, NULL, store_time)::{schema}.answer;
END $$;

-- Hand a free lock over to the first in line who is still there, or wake it, if it is to ask by itself; and write what
-- is left. What is handed over is told as a byte 1, 'attempt serial beyond grade token evidence', a line end and the
-- owner; nobody hears of it before this is committed. Somebody waits for this: so it calls other functions only where
-- it must.
CREATE OR REPLACE FUNCTION {schema}.pass_on(item {schema}.lease, store_time timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    first {schema}.waiter;
    grade text := 'committed';
    proof text := '-';
    told text;
    channel text;
    setting text;
    nothing text;
BEGIN
    WHILE item.owner IS NULL AND cardinality(item.waiters) > 0 LOOP
        first := item.waiters[1];
        EXIT WHEN NOT (pg_try_advisory_xact_lock_shared({sign_of_life}, first.backend)
                       AND {schema}.is_gone(first.backend));
        item.waiters := item.waiters[2:];
        first := NULL;
    END LOOP;
    IF item.owner IS NULL AND first.owner IS NOT NULL THEN
        channel := {schema}.channel(first.owner);
        IF first.token > item.token AND first.token <= {schema}.microseconds(store_time) + 3600000000 THEN
            NULL;
        ELSIF first.token < 0 THEN
            first.token := greatest(item.token + 1, {schema}.microseconds(store_time));
        ELSIF first.token IS NOT NULL THEN
            first.token := NULL;
            grade := 'tentative';
            proof := coalesce(encode(item.evidence, 'hex'), '-');
        END IF;
        told := E'\x01' || concat_ws(
            ' ', first.attempt, first.serial,
            (extract(epoch FROM store_time + first.ttl - first.until) * 1000000)::bigint,
            grade, coalesce(first.token::text, '-'), proof
        ) || E'\n' || first.owner;
        IF octet_length(channel) >= 64 OR octet_length(told) >= 8000 THEN
            first.serial := NULL;
        END IF;
        IF first.serial IS NOT NULL THEN
            IF current_setting('synchronous_commit') = 'off' THEN
                setting := set_config('synchronous_commit', 'on', true);
            END IF;
            item.owner := first.owner;
            item.attempt := first.attempt;
            item.until := store_time + first.ttl;
            item.ticket := first.ticket;
            item.held_token := first.token;
            item.entry := first.entry;
            IF first.token IS NOT NULL THEN
                item.token := first.token;
                item.evidence := first.entry;
            END IF;
            item.waiters := item.waiters[2:];
            nothing := pg_notify(channel, told);
        ELSE
            setting := set_config('synchronous_commit', 'off', true);
            PERFORM {schema}.wake(first.owner);
        END IF;
    ELSE
        setting := set_config('synchronous_commit', 'off', true);
    END IF;
    PERFORM {schema}.write(item);
END $$;

-- It says, as "smaller", whether others wait who will have to be handed it, too.
CREATE OR REPLACE FUNCTION {schema}.release(resource text, asker text, asker_attempt bigint) RETURNS {schema}.answer
LANGUAGE plpgsql AS $$
DECLARE
    item {schema}.lease;
    store_time timestamptz;
    grade text := 'gone';
    waited integer;
BEGIN
    SELECT * INTO item FROM {schema}.lease WHERE name = resource FOR NO KEY UPDATE;
    store_time := clock_timestamp();
    item := {schema}.settled(item, store_time);
    waited := cardinality(item.waiters);
    IF waited > 0 THEN
        item.waiters := ARRAY(
            SELECT each FROM unnest(item.waiters) AS each
             WHERE each.owner <> asker OR each.attempt <> asker_attempt ORDER BY each.ticket, each.owner
        );
    END IF;
    IF {schema}.holds(item, asker, asker_attempt) THEN
        item.owner := NULL;
        item.until := NULL;
        grade := 'done';
    ELSIF cardinality(item.waiters) < waited THEN
        grade := 'done';
    END IF;
    PERFORM {schema}.pass_on(item, store_time);
    RETURN (grade, NULL, NULL, cardinality(item.waiters) > 1, NULL, NULL, store_time)::{schema}.answer;
END $$;

INSERT INTO {schema}.store (layout) VALUES ({layout}) ON CONFLICT (single) DO UPDATE SET layout = excluded.layout;
