"""Storage of studies, sessions and answers in SQLite or PostgreSQL, without algorithms.

What holds, whoever calls and however many at once:

- An event (an answer, an undo) is in the database, on disk, before the function that adds it returns.
- Events are added and never changed or removed. A session has at most one answer to a query, and its events have
  consecutive numbers; of two callers who add at once, one gets the other's event to look at.
- Everything else about a session follows from its row, the parts that the row names, and its events. Prefetched
  queries that are stored beside them are a cache: their loss costs time and nothing else.

Needs the extra ``web``.
"""
