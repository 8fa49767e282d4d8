"""Options of a comparison of groups, the same for ``gp4c compare`` and ``gp4c report``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from gp4c.cli.options.grouped import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from gp4c.analysis.comparison import Comparison
    from gp4c.analysis.type_comparison import TypeComparison
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator


class Test(StrEnum):
    """What the permutation test looks for."""

    LEVEL = "level"
    CURVE = "curve"
    TREND = "trend"
    ANY = "any"


class Weights(StrEnum):
    """When differences count."""

    EVEN = "even"
    EARLY = "early"
    LATE = "late"


_GROUPS = "Groups"
StrataOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Column of strata, such as centres: permute within them.", rich_help_panel=_GROUPS
    ),
]
BlocksOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Column of randomisation blocks: permute within them.", rich_help_panel=_GROUPS
    ),
]
ClusterOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Column of centres: a random effect for each, standard errors robust by centre.",
        rich_help_panel=_GROUPS,
    ),
]
ReferenceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Group to compare with; the first if absent.", rich_help_panel=_GROUPS),
]
TestOption: TypeAlias = Annotated[
    Test,
    typer.Option(
        help="level: more or fewer events; curve: mean numbers so far; trend: ordered "
        "groups; any: whichever differs most.",
        rich_help_panel=_GROUPS,
    ),
]
WeightsOption: TypeAlias = Annotated[
    Weights,
    typer.Option(help="When differences count, for level and trend.", rich_help_panel=_GROUPS),
]
ScoresOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="GROUP=NUMBER,...",
        help="Scores of ordered groups, for trend.",
        rich_help_panel=_GROUPS,
    ),
]
PermutationsOption: TypeAlias = Annotated[
    int, typer.Option(min=1, help="Permutations of the test.", rich_help_panel=_GROUPS)
]


@dataclass(frozen=True)
class GroupOptions:
    """How groups are compared, as given on the command line."""

    strata: StrataOption = None
    blocks: BlocksOption = None
    cluster: ClusterOption = None
    reference: ReferenceOption = None
    test: TestOption = Test.LEVEL
    weights: WeightsOption = Weights.EVEN
    scores: ScoresOption = None
    permutations: PermutationsOption = 9999

    def columns(self, by: str | None) -> tuple[str | None, ...]:
        """The columns that say where each subject belongs."""
        return by, self.strata, self.blocks, self.cluster

    def check_used(self, by: str | None) -> None:
        """Refuse options of a comparison where nothing is compared."""
        given = [name for name in vars(self) if getattr(self, name) != getattr(_DEFAULT, name)]
        if by is None and given:
            raise typer.BadParameter(
                f"--{given[0]} compares groups: it goes with --by and --model gp4c"
            )

    def compare(
        self,
        panel: PanelCounts,
        by: str,
        model: PanelEstimator,
        *,
        seed: int,
        progress: Callable[[str], None] | None = None,
    ) -> Comparison | TypeComparison:
        """Compare groups of a covariate with a model that has a posterior, and its formula."""
        from gp4c.analysis.compare_groups import compare
        from gp4c.analysis.groups.group_columns import read_groups
        from gp4c.estimators.gp_base import GaussianProcessModel

        groups = read_groups(panel, by)  # says what is wrong with it before anything is fitted
        values = {str(value): value for value in groups.levels}
        reference = None if self.reference is None else values.get(self.reference, self.reference)
        assert isinstance(model, GaussianProcessModel)
        return compare(
            panel, by, model, strata=self.strata, blocks=self.blocks, reference=reference,
            cluster=self.cluster, test=self.test.value, weights=self.weights.value,
            scores=_scores(self.scores), n_permutations=self.permutations, random_state=seed,
            progress=progress,
        )  # fmt: skip


_DEFAULT = GroupOptions()
#: gives a command every option of :class:`GroupOptions`, together as ``groups``
takes_groups = grouped("groups", GroupOptions)


def _scores(text: str | None) -> dict[Hashable, float] | None:
    """``"low=1,high=2"`` as a dictionary."""
    if text is None:
        return None
    found: dict[Hashable, float] = {}
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            raise typer.BadParameter(
                f"--scores are GROUP=NUMBER, separated by commas; found {part.strip()!r}"
            ) from None
    return found
