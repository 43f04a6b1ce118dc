"""Tables of the database."""

from __future__ import annotations

import sqlalchemy as sa

from pairseek.core.validation import MAX_ID_LENGTH

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Times are ISO 8601 in UTC with microseconds, so that they sort as text and are alike in both databases.
TIME = sa.String(32)
NAME = sa.String(MAX_ID_LENGTH)
KEY = sa.String(64)

meta = sa.Table(
    "meta",
    metadata,
    sa.Column("key", KEY, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

users = sa.Table(
    "users",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", NAME, nullable=False, unique=True),
    sa.Column("password", sa.Text, nullable=False),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("is_admin", sa.Boolean, nullable=False),
)

logins = sa.Table(
    "logins",
    metadata,
    sa.Column("token_hash", KEY, primary_key=True),
    sa.Column("user_id", sa.ForeignKey("users.id"), nullable=False),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("expires_at", TIME, nullable=False),
)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("key", KEY, nullable=False),
    sa.Column("at", TIME, nullable=False),
    sa.Index("ix_attempts_key_at", "key", "at"),
)

rates = sa.Table(
    "rates",
    metadata,
    sa.Column("key", KEY, primary_key=True),
    sa.Column("tokens", sa.Double, nullable=False),
    # Seconds on the clock of `pairseek.store.rates`.
    sa.Column("at", sa.Double, nullable=False),
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", NAME, nullable=False),
    sa.Column("token_hash", KEY, nullable=False, unique=True),
    sa.Column("scopes", sa.JSON, nullable=False),
    sa.Column("study_id", sa.ForeignKey("studies.id"), nullable=True),
    sa.Column("user_name", NAME, nullable=False),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("used_at", TIME, nullable=True),
    sa.Column("revoked_at", TIME, nullable=True),
    sa.Column("expires_at", TIME, nullable=False),
)

studies = sa.Table(
    "studies",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("slug", NAME, nullable=False, unique=True),
    sa.Column("configuration", sa.JSON, nullable=False),
    sa.Column("items", sa.LargeBinary, nullable=False),
    sa.Column("is_open", sa.Boolean, nullable=False),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("created_by", NAME, nullable=False),
    sa.Column("closed_at", TIME, nullable=True),
    # Closing date of the configuration, from which the study counts as closed.
    sa.Column("closes_at", TIME, nullable=True),
    # How often items or the logo were changed; workers reload them when it changes.
    sa.Column("additions", sa.Integer, nullable=False, server_default="0"),
    # Number of the catalogue in `items`; earlier ones are in `catalogues`.
    sa.Column("catalogue", sa.Integer, nullable=False, server_default="0"),
    # Size of `items`, so that overviews need not read them.
    sa.Column("item_count", sa.Integer, nullable=False, server_default="0"),
    sa.Column("dimensions", sa.Integer, nullable=False, server_default="0"),
)

# Replaced items of a study, kept because the sessions that began with them refer to them.
catalogues = sa.Table(
    "catalogues",
    metadata,
    sa.Column("study_id", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    # Hash of ids, coordinates and appeal, and the number of items.
    sa.Column("hash", KEY, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("items", sa.LargeBinary, nullable=False),
    sa.Column("replaced_at", TIME, nullable=False),
)

# Attributes of a study's items that change from day to day, such as stock and prices; `pairseek.web.studies.attributes`
# packs them.
attributes = sa.Table(
    "attributes",
    metadata,
    sa.Column("study_id", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("changed_at", TIME, nullable=False),
)

# Learning state of a study; if it has no row, its configuration applies.
learning = sa.Table(
    "learning",
    metadata,
    sa.Column("study_id", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("is_on", sa.Boolean, nullable=True),
    # Version that sessions begin with: 0 for none, null for the newest.
    sa.Column("chosen", sa.Integer, nullable=True),
    # Number of finished sessions at the last attempt, and why it failed.
    sa.Column("tried", sa.Integer, nullable=True),
    sa.Column("failure", sa.Text, nullable=True),
    sa.Column("failed_at", TIME, nullable=True),
    # User who has requested to learn; null once learning has begun.
    sa.Column("requested_by", NAME, nullable=True),
)

media = sa.Table(
    "media",
    metadata,
    sa.Column("study_id", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("name", KEY, primary_key=True),
    sa.Column("width", sa.Integer, primary_key=True),
    sa.Column("height", sa.Integer, nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

# Uploaded sounds and videos. They are stored in pieces, so that a range can be read without the rest.
recordings = sa.Table(
    "recordings",
    metadata,
    sa.Column("study_id", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("name", KEY, primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
)

recording_pieces = sa.Table(
    "recording_pieces",
    metadata,
    sa.Column("study_id", sa.Integer, primary_key=True),
    sa.Column("name", KEY, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.ForeignKeyConstraint(["study_id", "name"], ["recordings.study_id", "recordings.name"]),
)

populations = sa.Table(
    "populations",
    metadata,
    sa.Column("study_id", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("created_by", NAME, nullable=False),
    sa.Column("dropped_at", TIME, nullable=True),
    # Facts about the version that the study's owner sees.
    sa.Column("facts", sa.JSON(none_as_null=True), nullable=True),
)

# Sessions that a population was learned from; when a session is deleted, the population is dropped.
learned_from = sa.Table(
    "learned_from",
    metadata,
    sa.Column("study_id", sa.Integer, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("session_id", sa.ForeignKey("sessions.id"), primary_key=True, index=True),
    sa.ForeignKeyConstraint(["study_id", "version"], ["populations.study_id", "populations.version"]),
)

# Newest findings of a study, and the computations of them, which are numbered from 1. One is wanted if `wanted` exceeds
# `done`; it may already have begun.
findings = sa.Table(
    "findings",
    metadata,
    sa.Column("study_id", sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("wanted", sa.Integer, nullable=False, server_default="0"),
    sa.Column("begun", sa.Integer, nullable=False, server_default="0"),
    sa.Column("done", sa.Integer, nullable=False, server_default="0"),
    # State of the sessions that the findings include, see `store.sessions.state_of_study`.
    sa.Column("sessions", sa.Text, nullable=True),
    sa.Column("computed_at", TIME, nullable=True),
    sa.Column("content", sa.LargeBinary, nullable=True),
)

# Resolved parts of searches by content hash; sessions that began with the same parts share a row.
parts = sa.Table(
    "parts",
    metadata,
    sa.Column("key", KEY, primary_key=True),
    sa.Column("content", sa.JSON, nullable=False),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", KEY, primary_key=True),
    sa.Column("study_id", sa.ForeignKey("studies.id"), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("token_hash", KEY, nullable=False, unique=True),
    # Hash of the person's id, unique while they may have only one session, and hash of the browser that began it.
    sa.Column("claim", KEY, nullable=True),
    sa.Column("browser", KEY, nullable=True),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("participant", NAME, nullable=True),
    sa.Column("prolific_pid", NAME, nullable=True),
    sa.Column("prolific_study", NAME, nullable=True),
    sa.Column("prolific_session", NAME, nullable=True),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("finished_at", TIME, nullable=True),
    # Time at which the person went on to the result and completion code; nothing can be undone afterwards.
    sa.Column("confirmed_at", TIME, nullable=True),
    sa.Column("reason", sa.Text, nullable=True),
    sa.Column("final", sa.JSON(none_as_null=True), nullable=True),
    sa.Column("truth", sa.JSON(none_as_null=True), nullable=True),
    sa.Column("population", sa.Integer, nullable=True),
    # Number of the study's catalogue that the session began with.
    sa.Column("catalogue", sa.Integer, nullable=False, server_default="0"),
    sa.Column("parts", sa.ForeignKey("parts.key"), nullable=False),
    sa.Column("opened_by", KEY, nullable=True),
    # Further variables of the link, by name.
    sa.Column("variables", sa.JSON(none_as_null=True), nullable=True),
    # Replies to the researcher's own questions, by stage (before, after) and name.
    sa.Column("replies", sa.JSON(none_as_null=True), nullable=True),
    sa.Index("ix_sessions_study_id_kind", "study_id", "kind"),
    sa.Index("ix_sessions_study_id_participant", "study_id", "participant"),
    sa.Index("ix_sessions_study_id_prolific_pid", "study_id", "prolific_pid"),
    sa.Index("ix_sessions_study_id_claim", "study_id", "claim", unique=True),
)

queries = sa.Table(
    "queries",
    metadata,
    sa.Column("session_id", sa.ForeignKey("sessions.id"), primary_key=True),
    sa.Column("name", KEY, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("left", NAME, nullable=False),
    sa.Column("right", NAME, nullable=False),
    sa.Column("asked_at", TIME, nullable=False),
    sa.Column("details", sa.JSON, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("session_id", sa.ForeignKey("sessions.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("query", KEY, nullable=False),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("outcome", sa.String(8), nullable=True),
    sa.Column("rt_ms", sa.Integer, nullable=True),
    sa.Column("shown_at", TIME, nullable=True),
    sa.Column("sent_at", TIME, nullable=True),
    sa.Column("attempt", sa.Integer, nullable=True),
    sa.Column("at", TIME, nullable=False),
    sa.Column("server_ms", sa.Float, nullable=True),
    sa.Column("played", sa.JSON(none_as_null=True), nullable=True),
    sa.UniqueConstraint("session_id", "query", "kind"),
    sa.Index("ix_events_at", "at"),
)

marks = sa.Table(
    "marks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("session_id", sa.ForeignKey("sessions.id"), nullable=False, index=True),
    sa.Column("query", KEY, nullable=True),
    sa.Column("action", sa.String(8), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("who", NAME, nullable=False),
    sa.Column("at", TIME, nullable=False),
)

blurs = sa.Table(
    "blurs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("session_id", sa.ForeignKey("sessions.id"), nullable=False, index=True),
    sa.Column("query", KEY, nullable=False),
    sa.Column("lost_at", TIME, nullable=False),
    sa.Column("ms", sa.Integer, nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", TIME, nullable=False),
    sa.Column("who", NAME, nullable=False),
    sa.Column("action", KEY, nullable=False),
    sa.Column("study", NAME, nullable=True),
    sa.Column("details", sa.JSON, nullable=False),
)
