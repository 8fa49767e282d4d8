"""GP4CW: GP4C with a free weight for each subject, as in Appendix F of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from gp4c.estimators.gp4c import GP4C


class GP4CW(GP4C):
    """GP4C with one free weight per subject (Appendix F of the paper): ``effect="weight"``.

    The scale that f and the weights share is fixed by a mean weight of 1. Scores of held-out
    subjects use weights fitted to those same subjects, as in the paper; that is not a
    prediction (see ``score(new_subjects=True)``).
    """

    name = "gp4cw"
    title = "smooth event rate with a free weight per subject (squared Gaussian process)"
    effect_options: ClassVar[Mapping[str, str | None]] = {"auto": "weight", "weight": "weight"}
    burst_options: ClassVar[Mapping[str, str | bool]] = {"auto": False, "no": False}

    def __init__(
        self,
        *,
        n_inducing: int | None = None,
        count_term: str = "lemma2",
        b: float = 0.3,
        kernel: str = "se",
        mean: str | float = "learn",
        hyper: str = "optimize",
        optimizer: str = "natural",
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: int | None = None,
    ):
        super().__init__(
            n_inducing=n_inducing,
            count_term=count_term,
            b=b,
            kernel=kernel,
            mean=mean,
            effect="weight",
            hyper=hyper,
            optimizer=optimizer,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
        )

    @classmethod
    def paper(cls, b: float = 0.3, n_inducing: int = 30, random_state: int | None = None) -> GP4CW:
        """The paper's estimator with weights in full; see :meth:`GP4C.paper`.

        Examples
        --------
        >>> import gp4c
        >>> gp4c.GP4CW.paper(random_state=1).get_params()["optimizer"]
        'vem'
        """
        return GP4CW(
            n_inducing=n_inducing, b=b, optimizer="vem", tol=1e-4, random_state=random_state
        )
