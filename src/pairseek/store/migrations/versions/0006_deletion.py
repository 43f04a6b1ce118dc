"""Columns for deletion: administrators, token expiry, and the sessions that a population was learned from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_DAYS = 90


def upgrade() -> None:
    """Add the columns and the table, and fill them from existing rows."""
    time = datetime.now(UTC)
    now, later = (moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") for moment in (time, time + timedelta(days=_DAYS)))
    op.add_column("users", sa.Column("is_admin", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("tokens", sa.Column("expires_at", sa.String(length=32), nullable=False, server_default=later))
    op.add_column("studies", sa.Column("closed_at", sa.String(length=32), nullable=True))
    op.add_column("populations", sa.Column("dropped_at", sa.String(length=32), nullable=True))
    op.add_column("sessions", sa.Column("opened_by", sa.String(length=64), nullable=True))
    op.create_table(
        "learned_from",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["study_id", "version"],
            ["populations.study_id", "populations.version"],
            name=op.f("fk_learned_from_study_id_version"),
        ),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_learned_from_session_id")),
        sa.PrimaryKeyConstraint("study_id", "version", "session_id", name=op.f("pk_learned_from")),
    )
    op.create_index(op.f("ix_learned_from_session_id"), "learned_from", ["session_id"], unique=False)
    run = op.get_bind().execute
    run(sa.text("UPDATE users SET is_admin = (id = (SELECT MIN(id) FROM users))"))
    run(sa.text("UPDATE studies SET closed_at = :now WHERE NOT is_open"), {"now": now})
    # The sessions that an existing population was learned from are unknown: it may be any session with an answer.
    run(
        sa.text(
            "INSERT INTO learned_from (study_id, version, session_id) "
            "SELECT p.study_id, p.version, s.id FROM populations p JOIN sessions s ON s.study_id = p.study_id "
            "WHERE s.kind = 'person' AND s.version > 0 AND s.created_at <= p.created_at"
        )
    )
