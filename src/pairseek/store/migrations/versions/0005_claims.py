"""Claims, which give each person at most one session, and the time at which the end of a session was confirmed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; sessions that have ended count as confirmed."""
    op.add_column("sessions", sa.Column("claim", sa.String(length=64), nullable=True))
    op.add_column("sessions", sa.Column("browser", sa.String(length=64), nullable=True))
    op.add_column("sessions", sa.Column("confirmed_at", sa.String(length=32), nullable=True))
    op.create_index("ix_sessions_study_id_claim", "sessions", ["study_id", "claim"], unique=True)
    op.execute("UPDATE sessions SET confirmed_at = finished_at")
