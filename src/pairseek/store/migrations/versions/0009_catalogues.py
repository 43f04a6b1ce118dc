"""Catalogues of studies: replaced items, and the items that each session began with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table and the columns; all existing sessions use the present items."""
    op.create_table(
        "catalogues",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("items", sa.LargeBinary(), nullable=False),
        sa.Column("replaced_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["studies.id"], name=op.f("fk_catalogues_study_id")),
        sa.PrimaryKeyConstraint("study_id", "number", name=op.f("pk_catalogues")),
    )
    op.add_column("studies", sa.Column("catalogue", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("sessions", sa.Column("catalogue", sa.Integer(), nullable=False, server_default="0"))
