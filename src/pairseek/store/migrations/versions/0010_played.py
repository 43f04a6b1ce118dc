"""Media playback: whether the sound or video on each side was played before the answer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is empty for existing answers."""
    op.add_column("events", sa.Column("played", sa.JSON(), nullable=True))
