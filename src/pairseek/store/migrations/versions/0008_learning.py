"""Automatic learning: learning state, facts about versions, and the number of item additions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table and the columns."""
    op.create_table(
        "learning",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("is_on", sa.Boolean(), nullable=True),
        sa.Column("chosen", sa.Integer(), nullable=True),
        sa.Column("tried", sa.Integer(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("failed_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["study_id"], ["studies.id"], name=op.f("fk_learning_study_id")),
        sa.PrimaryKeyConstraint("study_id", name=op.f("pk_learning")),
    )
    op.add_column("populations", sa.Column("facts", sa.JSON(), nullable=True))
    op.add_column("studies", sa.Column("additions", sa.Integer(), nullable=False, server_default="0"))
