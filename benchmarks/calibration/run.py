"""The calibration study in one command, which shows progress and resumes where it stopped.

``python -m benchmarks.calibration --jobs 2`` from the top of the project. Tables are
printed and written to ``benchmarks/results/calibration.json``, one line per data set to
``calibration_sets.csv``. ``--report`` only summarises what is there.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.calibration import document, report
from benchmarks.calibration.cases import FIRST, paper_case, prior_case
from benchmarks.calibration.measure import measure
from benchmarks.calibration.store import CACHE, Store, version
from benchmarks.calibration.synthetic import SETS, trial

Task = tuple[str, str, int]

#: data sets with the hyper-parameters known, which are quick, for each with the default
KNOWN_SHARE = 4


def tasks(
    sets: int, compared: int, intensities: int, trials: int, first: int = FIRST
) -> list[Task]:
    """What a study of this size holds, the most telling first.

    Parameters
    ----------
    sets, compared : int
        Data sets of the prior study for the default, and for the other arms.
    intensities : int
        Intensities of the paper's setting.
    trials : int
        Trials of Synthetic A; B and C have two fifths as many.
    first : int
        Number of the first data set of the prior study.
    """
    early = min(60, sets)

    def prior(arm: str, start: int, stop: int) -> list[Task]:
        return [("prior", arm, first + i) for i in range(start, stop)]

    plan: list[Task] = []
    for number in range(max(early, intensities)):
        plan += prior("default", number, min(number + 1, early))
        if number < intensities:
            plan += [("setting", arm, number) for arm in ("default", "paper")]
    plan += prior("default", early, min(sets, 200))
    for number in range(min(compared, sets)):
        plan += [task for arm in ("optimize", "paper") for task in prior(arm, number, number + 1)]
    shares = dict(zip(SETS, (1.0, 0.4, 0.4), strict=True))
    plan += [("synthetic", name, i) for name in SETS for i in range(round(trials * shares[name]))]
    plan += prior("default", 200, sets)
    plan += [("setting", "optimize", number) for number in range(intensities)]
    return plan + prior("known", 0, KNOWN_SHARE * sets)


def perform(task: Task, folder: Path) -> tuple[Task, float]:
    """Do one task and keep its record; return how long it took."""
    from gp4c.threads import one_blas_thread

    study, arm, number = task
    began = time.perf_counter()
    with one_blas_thread():
        if study == "synthetic":
            record: dict[str, Any] = trial(arm, number)
        else:
            record = measure((prior_case if study == "prior" else paper_case)(number), arm)
    Store(folder).write(task, record)
    return task, time.perf_counter() - began


def run(plan: list[Task], store: Store, jobs: int) -> None:
    """Do all tasks that have no record yet."""
    from joblib import Parallel, delayed

    missing = [task for task in plan if not store.has(task)]
    print(f"{len(plan)} tasks, {len(plan) - len(missing)} of them done before", flush=True)
    began = time.perf_counter()
    work = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    done = work(delayed(perform)(task, store.folder) for task in missing)
    for count, (task, took) in enumerate(done, start=1):
        left = (time.perf_counter() - began) / count * (len(missing) - count)
        name = f"{task[0]} {task[1]} {task[2]}"
        print(f"{count}/{len(missing)} {name:26s} {took:6.1f} s, {left / 60:5.1f} min left",
              flush=True)  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=500, help="data sets of the prior study")
    parser.add_argument("--compared", type=int, default=30, help="of them for the other arms too")
    parser.add_argument("--intensities", type=int, default=160, help="of the paper's setting")
    parser.add_argument("--trials", type=int, default=20, help="of Synthetic A")
    parser.add_argument("--first", type=int, default=FIRST, help="number of the first data set")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of finished data sets")
    parser.add_argument("--results", type=Path, default=report.RESULTS, help="folder of tables")
    parser.add_argument("--version", default=None, help="summarise this version's results")
    parser.add_argument("--docs", action="store_true", help="renew the tables of the docs")
    parser.add_argument("--report", action="store_true", help="summarise only, run nothing")
    options = parser.parse_args(arguments)
    label = options.version or version()
    store = Store(options.cache / label)
    if not options.report:
        sizes = (options.sets, options.compared, options.intensities, options.trials)
        run(tasks(*sizes, options.first), store, options.jobs)
    found = report.write(store, label, options.results, range(options.first, sys.maxsize))
    if options.docs:
        document.update(found)


if __name__ == "__main__":
    main()
