"""Findings of studies, computed once for all workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "findings",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("wanted", sa.Integer(), server_default="0", nullable=False),
        sa.Column("begun", sa.Integer(), server_default="0", nullable=False),
        sa.Column("done", sa.Integer(), server_default="0", nullable=False),
        sa.Column("sessions", sa.Text(), nullable=True),
        sa.Column("computed_at", sa.String(length=32), nullable=True),
        sa.Column("content", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["study_id"], ["studies.id"], name=op.f("fk_findings_study_id")),
        sa.PrimaryKeyConstraint("study_id", name=op.f("pk_findings")),
    )
