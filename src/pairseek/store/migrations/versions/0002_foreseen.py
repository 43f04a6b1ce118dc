"""What would follow each answer to an open query, put by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "foreseen",
        sa.Column("session_id", sa.String(length=64), nullable=False),
        sa.Column("query", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_foreseen_session_id")),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_foreseen")),
    )
