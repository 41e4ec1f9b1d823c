-- The first version of the tables (docs/store.md), the same as those of SQLite. JSON and not
-- JSONB: what a model or a tool wrote comes back as it was, its numbers too.

CREATE TABLE sessions (
    id       TEXT    NOT NULL PRIMARY KEY,
    epoch    BIGINT  NOT NULL,
    began_at BIGINT  NOT NULL,
    folder   TEXT    NOT NULL,
    title    TEXT    NOT NULL,
    memo     JSON    NOT NULL
);

CREATE TABLE agents (
    session  TEXT    NOT NULL REFERENCES sessions (id),
    name     TEXT    NOT NULL,
    position BIGINT  NOT NULL,
    role     TEXT    NOT NULL,
    parent   TEXT,
    prompt   TEXT,
    model    TEXT,
    system   TEXT    NOT NULL,
    settings JSON    NOT NULL,
    memo     JSON    NOT NULL,
    PRIMARY KEY (session, name)
);

CREATE TABLE agent_progress (
    session  TEXT    NOT NULL,
    agent    TEXT    NOT NULL,
    run      BIGINT  NOT NULL,
    turn     BIGINT  NOT NULL,
    turn_seq BIGINT  NOT NULL,
    stop_seq BIGINT  NOT NULL,
    turns    BIGINT  NOT NULL,
    calls    BIGINT  NOT NULL,
    closed   BIGINT  NOT NULL,
    plan     JSON    NOT NULL,
    PRIMARY KEY (session, agent)
);

CREATE TABLE runs (
    session     TEXT    NOT NULL REFERENCES sessions (id),
    agent       TEXT    NOT NULL,
    run         BIGINT  NOT NULL,
    epoch       BIGINT  NOT NULL,
    started_seq BIGINT,
    outcome     TEXT,
    reason      TEXT,
    text        TEXT,
    changes     JSON,
    owed_to     TEXT,
    restarts    BIGINT,
    ended_seq   BIGINT,
    PRIMARY KEY (session, agent, run)
);

CREATE TABLE chat_messages (
    session      TEXT    NOT NULL,
    agent        TEXT    NOT NULL,
    seq          BIGINT  NOT NULL,
    run          BIGINT  NOT NULL,
    turn         BIGINT  NOT NULL,
    epoch        BIGINT  NOT NULL,
    role         TEXT    NOT NULL,
    message_type TEXT    NOT NULL,
    content      TEXT    NOT NULL,
    tool_name    TEXT,
    tool_call_id TEXT,
    tool_result  JSON,
    metadata     JSON    NOT NULL,
    created_at   BIGINT  NOT NULL,
    PRIMARY KEY (session, agent, seq)
);

CREATE TABLE messages (
    n             BIGINT  NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session       TEXT    NOT NULL,
    sender        TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    receiver      TEXT    NOT NULL,
    text          TEXT    NOT NULL,
    urgency       TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    address       TEXT    NOT NULL,
    asked_urgency TEXT,
    only_run      BIGINT,
    expires_at    BIGINT,
    seq           BIGINT  NOT NULL,
    accepted_at   BIGINT  NOT NULL,
    state         TEXT    NOT NULL,
    receipt       JSON    NOT NULL,
    rank          BIGINT  NOT NULL,
    settled       BIGINT  NOT NULL
);

-- An id may be longer than what fits into such an index; the second one finds it.
CREATE UNIQUE INDEX messages_by_id ON messages (session, md5(id), sender, receiver);
CREATE INDEX messages_of_id ON messages USING hash (id);

CREATE INDEX messages_in_order ON messages (session, n);
CREATE INDEX messages_unsettled ON messages (session, n) WHERE settled = 0;

CREATE TABLE events (
    session TEXT    NOT NULL,
    seq     BIGINT  NOT NULL,
    t       BIGINT  NOT NULL,
    agent   TEXT,
    run     BIGINT,
    turn    BIGINT,
    type    TEXT    NOT NULL,
    data    TEXT    NOT NULL, -- JSON, as it was told
    PRIMARY KEY (session, seq)
);

CREATE INDEX events_of_agent ON events (session, agent, seq) WHERE agent IS NOT NULL;
