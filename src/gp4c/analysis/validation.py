"""Models compared by how well they predict subjects that they have not seen."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from gp4c.estimators.base import PanelEstimator
from gp4c.exceptions import OverdispersionWarning

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]
Split = tuple[NDArray[np.intp], NDArray[np.intp]]


class Scored(Protocol):
    """What is compared: anything that can be fitted to some subjects and scored on others."""

    def get_params(self) -> Mapping[str, object]:
        """Arguments of the constructor."""
        ...

    def fit(self, panel: PanelCounts) -> object:
        """Fit to a panel."""
        ...

    def score(self, panel: PanelCounts) -> float:
        """Log-likelihood of other subjects."""
        ...


def cross_validate(
    models: Mapping[str, Scored] | Scored,
    panel: PanelCounts,
    n_splits: int = 5,
    n_jobs: int | None = None,
    *,
    test_size: float | None = None,
    random_state: int = 0,
) -> pd.DataFrame:
    """Held-out log-likelihoods of several models on the same splits of the subjects.

    Parameters
    ----------
    models : dict of str to estimator, or an estimator
        Anything with ``fit(panel)`` and ``score(panel)``; fitted afresh on each split.
    panel : PanelCounts
    n_splits : int
        Folds: each subject is held out once. With `test_size`: random splits.
    n_jobs : int, optional
        Processes (joblib), or those of the backend that ``joblib.parallel_config`` chose, such
        as Dask; the numbers are the same everywhere.
    test_size : float, optional
        Share of subjects held out, for repeated random splits instead of folds.
    random_state : int
        Seed of the splits. They depend on what the subjects' rows hold, not on labels or order.

    Returns
    -------
    pandas.DataFrame
        One row per split, one column per model: log-likelihood of the held-out subjects
        (Σ ln m! left out), higher is better. ``attrs`` has ``n_subjects`` and ``n_events`` held
        out per split, ``test_size`` and, where models give them, ``subject_scores``: for each
        model one list per split of the held-out subjects' own log-likelihoods.
        :func:`score_differences` turns it into paired differences with standard errors.

    Examples
    --------
    >>> import gp4c
    >>> from gp4c.analysis.validation import cross_validate, score_differences
    >>> panel = gp4c.load_dataset("bladder").where(treatment="placebo")
    >>> models = {"constant": gp4c.HomogeneousPoisson(),
    ...           "constant + gamma": gp4c.HomogeneousPoisson(effect="gamma")}
    >>> scores = cross_validate(models, panel)
    >>> scores.shape
    (5, 2)
    >>> score_differences(scores)["model"].tolist()
    ['constant + gamma', 'constant']
    """
    import pandas as pd
    from joblib import Parallel, delayed

    if not isinstance(models, Mapping):
        models = {type(models).__name__: models}
    if not models:
        raise ValueError("there is no model to validate")
    splits = _splits(panel, n_splits, test_size, random_state)
    tasks = [(name, model, k) for k in range(len(splits)) for name, model in models.items()]
    with _quiet():  # of fits in this process, threads included: filters belong to a process
        found = Parallel(n_jobs=n_jobs)(
            delayed(_fit_and_score)(model, panel, *splits[k], os.getpid()) for _, model, k in tasks
        )
    scores = pd.DataFrame(index=pd.RangeIndex(len(splits), name="split"), columns=list(models))
    each: dict[str, list[list[float]]] = {name: [] for name in models}
    for (name, _, k), (score, subjects) in zip(tasks, found, strict=True):
        scores.loc[k, name] = score
        if subjects is not None:
            each[name].append(subjects)
    scores = scores.astype(np.float64)
    held_out = [panel[test] for _, test in splits]
    scores.attrs = {
        "n_subjects": [len(part) for part in held_out],
        "n_events": [part.n_events for part in held_out],
        "test_size": test_size,
    }
    if all(len(lists) == len(splits) for lists in each.values()):
        scores.attrs["subject_scores"] = each
    return scores


def score_differences(scores: pd.DataFrame, reference: str | None = None) -> pd.DataFrame:
    """Paired differences of held-out log-likelihoods, best model first.

    Parameters
    ----------
    scores : DataFrame
        From :func:`cross_validate`.
    reference : str, optional
        Model that the others are compared with; default the best.

    Returns
    -------
    pandas.DataFrame
        Columns: ``model``; ``score``, mean per split; ``difference`` to the reference, mean per
        split; ``standard_error`` of it; ``splits_won`` against the reference, as a share.

    Notes
    -----
    Standard errors: for folds from the paired differences of subjects, which are held out once
    each (√n_subjects · sd per whole panel, scaled to a split); they do not cover what another
    training set would change. Without scores of subjects, and for repeated random splits, whose
    test sets overlap, from the differences of splits, with the variance enlarged by the ratio of
    test to training subjects (Nadeau and Bengio 2003).

    Examples
    --------
    >>> import gp4c
    >>> panel = gp4c.load_dataset("bladder").where(treatment="placebo")
    >>> plain, gamma = gp4c.HomogeneousPoisson(), gp4c.HomogeneousPoisson(effect="gamma")
    >>> models = {"plain": plain, "gamma": gamma}
    >>> scores = gp4c.cross_validate(models, panel)
    >>> gp4c.score_differences(scores)["model"].tolist()
    ['gamma', 'plain']
    """
    import pandas as pd

    means = scores.mean()
    best = str(means.idxmax()) if reference is None else reference
    if best not in scores.columns:
        raise ValueError(f"there is no model {best!r}; there are {list(scores.columns)}")
    rows = []
    for name in means.sort_values(ascending=False, kind="stable").index:
        difference = scores[name] - scores[best]
        won = float((difference > 0).mean()) if name != best else np.nan
        rows.append((name, means[name], difference.mean(), _error(scores, name, best), won))
    columns = ["model", "score", "difference", "standard_error", "splits_won"]
    return pd.DataFrame(rows, columns=columns)


def _error(scores: pd.DataFrame, name: str, reference: str) -> float:
    """Standard error of the mean difference per split."""
    if name == reference:
        return 0.0
    n, each = len(scores), scores.attrs.get("subject_scores")
    test_size = scores.attrs.get("test_size")
    if each is not None and test_size is None:
        paired = np.concatenate(each[name]) - np.concatenate(each[reference])
        return float(np.sqrt(len(paired)) * paired.std(ddof=1) / n)
    difference = (scores[name] - scores[reference]).to_numpy()
    share = 1 / n if test_size is None else test_size
    return float(difference.std(ddof=1) * np.sqrt(1 / n + share / (1 - share)))


def _splits(
    panel: PanelCounts, n_splits: int, test_size: float | None, random_state: int
) -> list[Split]:
    """Positions of training and test subjects; drawn in an order of content, not of labels."""
    n = panel.n_subjects
    if n_splits < (2 if test_size is None else 1) or (test_size is None and n_splits > n):
        raise ValueError(f"n_splits must be between 2 and {n} subjects, not {n_splits!r}")
    if test_size is not None and not 0 < test_size < 1:
        raise ValueError(f"test_size must be between 0 and 1, not {test_size!r}")
    order, rng = panel.content_order(), np.random.default_rng(random_state)
    if test_size is None:
        blocks = np.array_split(rng.permutation(n), n_splits)
    else:
        n_test = int(np.clip(round(test_size * n), 1, n - 1))
        blocks = [rng.permutation(n)[:n_test] for _ in range(n_splits)]
    splits = []
    for block in blocks:
        test = np.sort(order[block])
        splits.append((np.setdiff1d(np.arange(n), test), test))
    return splits


@contextmanager
def _quiet() -> Iterator[None]:
    """No warnings of overdispersion: scores on others say it better."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverdispersionWarning)
        yield


def _fit_and_score(
    model: Scored,
    panel: PanelCounts,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    parent: int,
) -> tuple[float, list[float] | None]:
    """Fit a fresh model and score it; `parent` is the process that has seen to warnings."""
    held_out = panel[test]
    fresh = type(model)(**model.get_params())
    with nullcontext() if os.getpid() == parent else _quiet():
        fresh.fit(panel[train])
    subjects = None
    if isinstance(fresh, PanelEstimator):
        subjects = [float(value) for value in fresh.score_subjects(held_out)]
    return float(fresh.score(held_out)), subjects
