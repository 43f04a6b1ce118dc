"""Removal of prefetched queries, now kept in memory, and of facts about dropped populations."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the table, which was a cache, and forget what dropped populations were learned from."""
    op.drop_table("prefetched")
    op.execute("UPDATE populations SET facts = NULL WHERE dropped_at IS NOT NULL")
