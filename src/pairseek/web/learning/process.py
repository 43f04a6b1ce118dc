"""Learning in a process of low priority."""

from __future__ import annotations

import json
import sys

from pairseek.core.types import JSON
from pairseek.errors import PairseekError, StoreUnavailable
from pairseek.store.database import Database
from pairseek.web.learning import populations, similarity
from pairseek.web.learning.learned import LearnedVersion
from pairseek.web.operations.processes import ProcessFailed, run_in_process
from pairseek.web.studies.catalogue import Catalogue, Study


class LearningFailed(PairseekError):
    """Learning has ended without a new version."""


def learn_in_process(database: Database, study: Study) -> LearnedVersion:
    """Learn from the answers of a study in a separate process with one thread and low priority."""
    task = {"database": database.url.render_as_string(hide_password=False), "study": study.row.slug}
    try:
        reply = json.loads(run_in_process(__name__, task))
    except (ProcessFailed, ValueError) as error:
        raise LearningFailed(f"learning has failed: {error}") from None
    if "error" in reply:
        raise (StoreUnavailable if reply["unavailable"] else LearningFailed)(reply["error"])
    return LearnedVersion.from_record(reply)


def main(task: bytes) -> None:
    """Carry out a task, and write the learned version to standard output."""
    json.dump(_learned(json.loads(task)), sys.stdout, allow_nan=False)


def _learned(task: JSON) -> JSON:
    database = Database(task["database"])
    try:
        study = Catalogue(database).by_slug(task["study"])
        learn = similarity.learn_version if study.configuration.is_similarity else populations.learn_version
        return learn(database, study).record()
    except PairseekError as error:
        return {"error": str(error), "unavailable": isinstance(error, StoreUnavailable)}
    finally:
        database.close()
