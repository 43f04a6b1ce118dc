"""Computation of findings in a process of low priority."""

from __future__ import annotations

import json
import sys

from pairseek.errors import PairseekError, StoreUnavailable
from pairseek.store.database import Database
from pairseek.web.operations.processes import ProcessFailed, run_in_process
from pairseek.web.results.findings import study_findings
from pairseek.web.results.packing import pack
from pairseek.web.studies.catalogue import Catalogue


def findings_in_process(database: Database, study_id: int) -> bytes:
    """Compute the findings of a study in a separate process with one thread and low priority; return them packed."""
    task = {"database": database.url.render_as_string(hide_password=False), "study": study_id}
    error, _, packed = run_in_process(__name__, task).partition(b"\n")
    if error:
        reply = json.loads(error)
        raise (StoreUnavailable if reply["unavailable"] else ProcessFailed)(reply["error"])
    return packed


def packed_findings(database: Database, study_id: int) -> bytes:
    """Compute the findings of a study; return them packed."""
    return pack(study_findings(database, Catalogue(database).by_id(study_id)))


def main(task: bytes) -> None:
    """Carry out a task, and write an error as a line or, after an empty line, the packed findings."""
    given = json.loads(task)
    database = Database(given["database"])
    try:
        reply = b"\n" + packed_findings(database, given["study"])
    except PairseekError as error:
        reply = json.dumps({"error": str(error), "unavailable": isinstance(error, StoreUnavailable)}).encode()
    finally:
        database.close()
    sys.stdout.buffer.write(reply)
