"""Variables of links, replies to the researcher's own questions, and closing dates."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; no configuration has a closing date yet."""
    op.add_column("studies", sa.Column("closes_at", sa.String(length=32), nullable=True))
    for name in ("variables", "replies"):
        op.add_column("sessions", sa.Column(name, sa.JSON(), nullable=True))
