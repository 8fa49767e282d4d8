"""From names of tables and figures to sections of the page: run what is missing, render all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gp4c.paper.catalogue import experiment
from gp4c.paper.running import Outcome, Progress, ReproductionError, run_tasks
from gp4c.paper.sections import Found, Plan, Section
from gp4c.paper.store import Store


@dataclass(frozen=True)
class Reproduction:
    """Sections of the page, the records behind them, and the trials that failed."""

    sections: list[Section]
    found: Found
    failed: list[Outcome]
    missing: int


def reproduce(
    names: Sequence[str],
    plan: Plan,
    store: Store,
    *,
    jobs: int | None = None,
    run: bool = True,
    progress: Progress = lambda done, total, text: None,
) -> Reproduction:
    """Run the trials of some tables and figures that are not in the store, and render them.

    Parameters
    ----------
    names : sequence of str
        See :data:`gp4c.paper.catalogue.NAMES`.
    plan : Plan
        Number of trials and seed.
    store : Store
    jobs : int, optional
        Processes; None leaves the choice, and that of the backend, to
        ``joblib.parallel_config``: a Dask cluster, for example.
    run : bool
        False renders what is there.
    progress : callable

    Examples
    --------
    >>> from pathlib import Path
    >>> from gp4c.paper.reproduction import reproduce
    >>> from gp4c.paper.sections import Plan
    >>> from gp4c.paper.store import Store
    >>> made = reproduce(["fig-bound"], Plan(trials=1), Store(Path("cache")))
    >>> made.sections[0].targets[0].found
    '0.3061'
    """
    modules = [experiment(name) for name in names]
    wanted = [task for module in modules for task in module.tasks(plan)]
    failed = run_tasks(wanted, store, jobs=jobs, progress=progress) if run else []
    found = store.found(wanted)
    more = [task for module in modules for task in module.later(plan, found)]
    if run:
        failed += run_tasks([*wanted, *more], store, jobs=jobs, progress=progress) if more else []
    found |= store.found(more)
    missing = len(set(wanted) | set(more)) - len(found)
    if wanted and not found:
        _explain_empty(store)
    sections = [module.render(plan, found) for module in modules]
    return Reproduction(sections, found, failed, missing)


def _explain_empty(store: Store) -> None:
    """Refuse a page without a single trial, naming what is there of other versions."""
    others = store.other_versions()
    if not others:
        raise ReproductionError(f"{store.cache}: there are no finished trials to show")
    listed = ", ".join(f"{name} ({n} records)" for name, n in others.items())
    raise ReproductionError(
        f"{store.cache}: there are no finished trials of this source version ({store.version}); "
        f"there are of: {listed}; name one with --source to show it"
    )
