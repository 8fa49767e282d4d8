"""Simulated trials through joblib, each kept as it ends, so that an interrupted run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from gp4c.analysis.planning.simulated_trial import relabellings_above
from gp4c.exceptions import PanelDataError
from gp4c.threads import leave_interrupts_to_the_parent, one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Generator

    from gp4c.analysis.planning.trial_design import TrialDesign

#: told after each batch: trials done, trials in all, which design
Progress: TypeAlias = Callable[[int, int, str], None]

#: trials that a worker runs at a time and that are kept together
BATCH = 25
#: what a file of trials says it is
_FORMAT = "gp4c power trials 1"


class TrialRecords:
    """Relabellings above the statistic of finished trials, by design, in memory and in a file.

    They depend on neither the level of the test nor the number of trials: a run with another
    level, or with more trials, takes up what is there.

    Parameters
    ----------
    path : Path, optional
        A JSON file, made if absent.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._found: dict[str, dict[int, list[int]]] = {}
        if path is not None and path.exists():
            self._found = _read(path)

    def batches(self, key: str) -> dict[int, list[int]]:
        """Finished batches of a design."""
        return dict(self._found.get(key, {}))

    def add(self, key: str, batch: int, values: list[int]) -> None:
        """Keep a batch; a process that is killed leaves the file as it was before."""
        self._found.setdefault(key, {})[batch] = values
        if self.path is None:
            return
        from gp4c.atomic import write_text

        ordered = {
            k: {str(b): v for b, v in sorted(found.items())} for k, found in self._found.items()
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, json.dumps({"format": _FORMAT, "trials": ordered}) + "\n")


def _read(path: Path) -> dict[str, dict[int, list[int]]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise ValueError
        return {
            key: {int(b): [int(v) for v in values] for b, values in found.items()}
            for key, found in content["trials"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise PanelDataError(
            f"{path} is not a file of trials by gp4c power; move it away, or choose another folder"
        ) from None


def run_trials(
    design: TrialDesign,
    n_per_arm: int,
    ratio: float,
    *,
    n_trials: int,
    seed: int,
    records: TrialRecords,
    progress: Progress,
) -> list[int]:
    """Relabellings above the statistic of trials 0 … n_trials − 1.

    They run where ``joblib.parallel_config`` says.
    """
    key = design_key(design, n_per_arm, ratio, seed)
    n_batches = -(-n_trials // BATCH)
    found = {b: v for b, v in records.batches(key).items() if b < n_batches and len(v) == BATCH}
    words = f"{n_per_arm} per arm, ratio {ratio:g}"
    progress(min(len(found) * BATCH, n_trials), n_trials, words)
    missing = [b for b in range(n_batches) if b not in found]
    with closing(_batches(design, n_per_arm, ratio, seed, missing)) as done:
        for batch, values in done:
            found[batch] = values
            records.add(key, batch, values)
            progress(min(len(found) * BATCH, n_trials), n_trials, words)
    return [value for b in range(n_batches) for value in found[b]][:n_trials]


def design_key(design: TrialDesign, n_per_arm: int, ratio: float, seed: int) -> str:
    """Everything that decides a trial, as text."""
    import numpy

    from gp4c import __version__

    settings = {
        "gp4c": __version__, "numpy": numpy.__version__, "n_per_arm": n_per_arm, "ratio": ratio,
        "seed": seed, **asdict(design),
    }  # fmt: skip
    return json.dumps(settings, sort_keys=True)


def _batches(
    design: TrialDesign, n_per_arm: int, ratio: float, seed: int, wanted: list[int]
) -> Generator[tuple[int, list[int]], None, None]:
    from joblib import Parallel, delayed

    parallel = Parallel(return_as="generator_unordered", batch_size=1)
    yield from parallel(
        delayed(run_batch)(design, n_per_arm, ratio, seed, batch) for batch in wanted
    )


def run_batch(
    design: TrialDesign, n_per_arm: int, ratio: float, seed: int, batch: int
) -> tuple[int, list[int]]:
    """Run the trials of a batch one after the other."""
    leave_interrupts_to_the_parent()
    numbers = range(batch * BATCH, (batch + 1) * BATCH)
    with one_blas_thread():
        return batch, [relabellings_above(design, n_per_arm, ratio, seed, k) for k in numbers]
