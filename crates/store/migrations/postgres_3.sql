-- Less to write for an event (decision 0027): an agent's are found by going through the session's.

DROP INDEX events_of_agent;
