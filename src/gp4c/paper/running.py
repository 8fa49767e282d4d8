"""Run trials through joblib, keep each as it ends, and go on where an earlier run stopped."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

from gp4c.exceptions import GP4CError, GP4CWarning
from gp4c.paper.store import Record, Store, Task, source_version
from gp4c.threads import leave_interrupts_to_the_parent

#: told after each trial: trials done, trials in all, the trial just finished
Progress: TypeAlias = Callable[[int, int, str], None]


#: times that workers may die (out of memory, a machine that goes) without a trial in between
_MOST_DEATHS = 3


@dataclass(frozen=True)
class Outcome:
    """What became of one trial, and the version of the source that its process has loaded."""

    task: Task
    record: Record | None
    error: str = ""
    version: str = ""


class ReproductionError(GP4CError):
    """A run cannot go on."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; what is done is kept."""

    def __init__(self, done: int, total: int):
        super().__init__(f"{done} of {total} trials are kept")
        self.done, self.total = done, total


def perform(task: Task) -> Outcome:
    """Run one trial, in whatever process joblib chose; an error is told, not raised."""
    from gp4c.paper.studies import study

    leave_interrupts_to_the_parent()
    version, began = source_version(), time.thread_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GP4CWarning)  # records hold what matters of them
            record = study(task.study)(**task.settings)
    except Exception as error:  # one bad trial must not end an hour's run
        return Outcome(task, None, f"{type(error).__name__}: {error}", version)
    return Outcome(task, record | {"cpu_seconds": time.thread_time() - began}, "", version)


def run_tasks(
    tasks: Iterable[Task],
    store: Store,
    *,
    jobs: int | None = None,
    progress: Progress = lambda done, total, text: None,
) -> list[Outcome]:
    """Run the tasks that have no record yet; return those that failed, which are not kept.

    Parameters
    ----------
    tasks : iterable of Task
        Run in the order of their trial numbers, so that a partial run has as many trials of
        everything.
    store : Store
        Where records are kept; written by this process only.
    jobs : int, optional
        Processes; by default, and for any other backend of joblib, what
        ``joblib.parallel_config`` says.
    progress : callable

    Raises
    ------
    Interrupted
        On Ctrl-C.
    """
    wanted = sorted(dict.fromkeys(tasks), key=lambda task: task.settings.get("trial", 0))
    missing = [task for task in wanted if store.read(task) is None]
    done, total, failed = len(wanted) - len(missing), len(wanted), []
    progress(done, total, "")
    if not missing:
        return []
    try:
        with closing(_outcomes(missing, jobs)) as outcomes:  # ends workers, whatever happens
            for outcome in outcomes:
                _check_version(outcome, store)
                if outcome.record is None:
                    failed.append(outcome)
                else:
                    store.write(outcome.task, outcome.record)
                    done += 1
                progress(done, total, str(outcome.task))
    except KeyboardInterrupt:
        raise Interrupted(done, total) from None
    return failed


def _outcomes(tasks: list[Task], jobs: int | None) -> Generator[Outcome, None, None]:
    """Outcomes as they come; dead workers are replaced and their trials run again."""
    from concurrent.futures import BrokenExecutor

    from joblib import Parallel, delayed

    left, deaths = dict.fromkeys(tasks), 0
    while left:
        parallel: Any = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        try:
            for outcome in parallel(delayed(perform)(task) for task in list(left)):
                del left[outcome.task]
                deaths = 0
                yield outcome
        except BrokenExecutor as error:
            deaths += 1
            if deaths >= _MOST_DEATHS:
                raise ReproductionError(
                    f"worker processes died {deaths} times in a row; fewer --jobs need less memory"
                ) from error


def _check_version(outcome: Outcome, store: Store) -> None:
    """Refuse a trial of a process that loaded other source than this one."""
    if outcome.version != store.version:
        raise ReproductionError(
            f"the source changed while the trials ran ({store.version}, now {outcome.version}); "
            "the same command starts anew with the changed one"
        )
