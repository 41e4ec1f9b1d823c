-- The first version of the tables (docs/store.md). Whole numbers are 64 bits; columns that
-- hold JSON say so; times that end in _at are microseconds since 1970, `t` is since the
-- session began.

CREATE TABLE sessions (
    id       TEXT    NOT NULL PRIMARY KEY,
    epoch    INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    folder   TEXT    NOT NULL,
    title    TEXT    NOT NULL,
    memo     TEXT    NOT NULL -- JSON
) STRICT;

CREATE TABLE agents (
    session  TEXT    NOT NULL REFERENCES sessions (id),
    name     TEXT    NOT NULL,
    position INTEGER NOT NULL,
    role     TEXT    NOT NULL,
    parent   TEXT,
    prompt   TEXT,
    model    TEXT,
    system   TEXT    NOT NULL,
    settings TEXT    NOT NULL, -- JSON
    memo     TEXT    NOT NULL, -- JSON
    PRIMARY KEY (session, name)
) STRICT;

CREATE TABLE agent_progress (
    session  TEXT    NOT NULL,
    agent    TEXT    NOT NULL,
    run      INTEGER NOT NULL,
    turn     INTEGER NOT NULL,
    turn_seq INTEGER NOT NULL,
    stop_seq INTEGER NOT NULL,
    turns    INTEGER NOT NULL,
    calls    INTEGER NOT NULL,
    closed   INTEGER NOT NULL,
    plan     TEXT    NOT NULL, -- JSON
    PRIMARY KEY (session, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    session     TEXT    NOT NULL REFERENCES sessions (id),
    agent       TEXT    NOT NULL,
    run         INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    started_seq INTEGER,
    outcome     TEXT,
    reason      TEXT,
    text        TEXT,
    changes     TEXT, -- JSON
    owed_to     TEXT,
    restarts    INTEGER,
    ended_seq   INTEGER,
    PRIMARY KEY (session, agent, run)
) STRICT;

CREATE TABLE chat_messages (
    session      TEXT    NOT NULL,
    agent        TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    run          INTEGER NOT NULL,
    turn         INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    role         TEXT    NOT NULL,
    message_type TEXT    NOT NULL,
    content      TEXT    NOT NULL,
    tool_name    TEXT,
    tool_call_id TEXT,
    tool_result  TEXT, -- JSON
    metadata     TEXT    NOT NULL, -- JSON
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (session, agent, seq)
) STRICT;

CREATE TABLE messages (
    n             INTEGER NOT NULL PRIMARY KEY,
    session       TEXT    NOT NULL,
    sender        TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    receiver      TEXT    NOT NULL,
    text          TEXT    NOT NULL,
    urgency       TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    address       TEXT    NOT NULL,
    asked_urgency TEXT,
    only_run      INTEGER,
    expires_at    INTEGER,
    seq           INTEGER NOT NULL,
    accepted_at   INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    receipt       TEXT    NOT NULL, -- JSON
    rank          INTEGER NOT NULL,
    settled       INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX messages_by_id ON messages (session, id, sender, receiver);

CREATE INDEX messages_in_order ON messages (session, n);
CREATE INDEX messages_unsettled ON messages (session, n) WHERE settled = 0;

CREATE TABLE events (
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    t       INTEGER NOT NULL,
    agent   TEXT,
    run     INTEGER,
    turn    INTEGER,
    type    TEXT    NOT NULL,
    data    TEXT    NOT NULL, -- JSON, as it was told
    PRIMARY KEY (session, seq)
) STRICT;

CREATE INDEX events_of_agent ON events (session, agent, seq) WHERE agent IS NOT NULL;
