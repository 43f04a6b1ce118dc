"""Execution of tasks on a dask.distributed cluster."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Any

from pairseek.errors import InvalidParameter, MissingExtra, PairseekError
from pairseek.experiments.runs.plan import Outcome, Task, Work
from pairseek.experiments.runs.worker import describe_failure, prepare_and_perform

CONNECT_TIMEOUT = 10
"""Seconds to wait for the scheduler."""
WORKER_TIMEOUT = 30
"""Seconds to wait for the first worker."""


def run_on_cluster(work: Work, pending: list[Task], on_outcome: Callable[[Outcome], None], *, address: str) -> None:
    """Run the tasks on the cluster of a scheduler, and pass each outcome to ``on_outcome`` as it arrives.

    The scheduler reruns tasks of lost workers; each outcome is still passed on only once.
    """
    client = _connect(address)
    try:
        _await_workers(client, address)
        run_id = secrets.token_hex(8)
        # The work is itself a task, so the scheduler restores it when the worker that held it is lost.
        remote_work = client.submit(_identity, work, key=f"pairseek-work-{run_id}")
        futures = {
            client.submit(prepare_and_perform, remote_work, task, run_id, key=f"pairseek-{run_id}-{i}"): task
            for i, task in enumerate(pending)
        }
        _collect(client, work, futures, on_outcome)
    finally:
        client.close()


def _collect(client: Any, work: Work, futures: dict[Any, Task], on_outcome: Callable[[Outcome], None]) -> None:
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    for future in as_completed(list(futures), loop=client.loop):
        task = futures.pop(future)
        try:
            outcome = future.result()
        except KilledWorker:
            raise PairseekError(
                f"{work.describe(task)} lost its worker several times, possibly because memory ran out: run the "
                f"same command again; finished trials are kept"
            ) from None
        except Exception as error:  # report any exception with the name of its task
            raise PairseekError(describe_failure(work, task, error)) from error
        on_outcome(outcome)
        future.release()


def _connect(address: str) -> Any:
    try:
        import distributed
    except ModuleNotFoundError:
        raise MissingExtra("a scheduler", "cluster") from None
    # This module reports lost connections and workers itself.
    logging.getLogger("distributed").setLevel(logging.ERROR)
    try:
        return distributed.Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InvalidParameter(
            f"the scheduler {address} does not answer ({reason}): give the address that `dask scheduler` prints, such "
            f"as tcp://10.0.0.1:8786"
        ) from None


def _await_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
    except TimeoutError:
        raise InvalidParameter(
            f"the scheduler {address} has no workers after {WORKER_TIMEOUT} s: start some with `dask worker {address} "
            f"--nthreads 1`"
        ) from None


def _identity(work: Work) -> Work:
    return work
