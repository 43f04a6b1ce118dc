"""Uploaded sounds and videos."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "recordings",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["studies.id"], name=op.f("fk_recordings_study_id")),
        sa.PrimaryKeyConstraint("study_id", "name", name=op.f("pk_recordings")),
    )
    op.create_table(
        "recording_pieces",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["study_id", "name"],
            ["recordings.study_id", "recordings.name"],
            name=op.f("fk_recording_pieces_study_id_name"),
        ),
        sa.PrimaryKeyConstraint("study_id", "name", "number", name=op.f("pk_recording_pieces")),
    )
