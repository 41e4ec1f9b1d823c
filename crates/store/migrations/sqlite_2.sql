-- The run that an agent was last resumed for, 0 where there is none: a resume is durable when it
-- is answered (docs/store.md).

ALTER TABLE agent_progress ADD COLUMN resumed INTEGER NOT NULL DEFAULT 0;
