"""Removal of prefetched queries, which are kept in memory."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the table; it was a cache."""
    op.drop_table("prefetched")
