"""Sounds and videos: whether each one of a pair was played before the answer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of the answers so far it is not known."""
    op.add_column("events", sa.Column("played", sa.JSON(), nullable=True))
