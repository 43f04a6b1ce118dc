"""Numbers of items and dimensions of studies, and requests to learn."""

from __future__ import annotations

import contextlib
import json
import zlib

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, and count the items of the studies."""
    for name in ("item_count", "dimensions"):
        op.add_column("studies", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    op.add_column("learning", sa.Column("requested_by", sa.String(length=200), nullable=True))
    connection = op.get_bind()
    for (number,) in connection.execute(sa.text("SELECT id FROM studies")).all():
        content = connection.execute(sa.text("SELECT items FROM studies WHERE id = :id"), {"id": number}).scalar_one()
        # Damaged items must not prevent the upgrade; the page of the study reports them.
        with contextlib.suppress(zlib.error, ValueError, TypeError, LookupError):
            coordinates = json.loads(zlib.decompress(content))["coordinates"]
            connection.execute(
                sa.text("UPDATE studies SET item_count = :items, dimensions = :dimensions WHERE id = :id"),
                {"id": number, "items": len(coordinates), "dimensions": len(coordinates[0])},
            )
