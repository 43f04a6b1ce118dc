"""Storage of studies, sessions and answers in SQLite or PostgreSQL, without algorithms.

Guarantees, which also hold for concurrent callers:

- An event (an answer or an undo) is committed to disk before the function that adds it returns.
- Events are append-only. A session has at most one answer per query, and its events are numbered consecutively. If two
  callers write at once, one gets a `VersionConflict` and has to read the other's event.
- The state of a session is a function of its row, the parts that the row names, and its events.

Needs the extra ``web``.
"""
