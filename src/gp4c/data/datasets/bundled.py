"""Data sets that come with the package: the real data of the paper, one repaired, and a trial.

"The paper" is Ding, Lee, Sato and Sugiyama, "Variational inference for Gaussian process with
panel count data" (UAI 2018). Its three studies are tabulated in J. Sun and X. Zhao (2013),
*Statistical Analysis of Panel Count Data*, Springer.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from gp4c.data.checks import check_choice, unknown_name
from gp4c.data.panel import PanelCounts
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd

#: types of events in the skin data
_CANCERS = ("basal", "squamous")
#: days in the paper's unit of time for the skin data
PAPER_MONTH = 30.0

_DESCRIPTIONS = {
    "nausea": "episodes of nausea, 113 patients with gallstones, weeks",
    "bladder": "new bladder tumours, 85 patients, months",
    "skin": "new skin cancers of two types, 290 patients, days; as in the paper",
    "skin_full": "the same trial with the visits that 'skin' lacks, days",
    "cgd": "serious infections, 128 patients in 13 centres, days; not in the paper",
}


def list_datasets() -> list[str]:
    """Names that :func:`load_dataset` knows.

    Examples
    --------
    >>> import gp4c
    >>> sorted(gp4c.list_datasets())
    ['bladder', 'cgd', 'nausea', 'skin', 'skin_full']
    """
    return list(_DESCRIPTIONS)


def load_dataset(name: str, *, event: str | None = None, unit: str | None = None) -> PanelCounts:
    """Load one of the data sets that come with the package.

    Parameters
    ----------
    name : {"nausea", "bladder", "skin", "skin_full", "cgd"}
        Their own loaders, :func:`load_nausea` and so on, say where the data are from and what is
        odd about them.
    event : {"all", "basal", "squamous"}, optional
        Which cancers of the skin sets to count; default both, as types of events
        (``panel.event_types``). "all" adds them up.
    unit : {"days", "paper"}, optional
        Unit of the skin sets: days, or days / 30 as in the paper; default days.

    Returns
    -------
    PanelCounts

    Examples
    --------
    >>> import gp4c
    >>> gp4c.load_dataset("bladder").where(group="A")
    <PanelCounts: 38 subjects, 513 intervals, 119 events, window (0, 53) months>
    """
    _check_name(name)
    if name in _PLAIN:
        for option, value in (("event", event), ("unit", unit)):
            if value is not None:
                raise PanelDataError(f"{option} is for the skin sets; found {value!r} for {name!r}")
        return _PLAIN[name]()
    load = load_skin if name == "skin" else load_skin_full
    return load(event=event, unit=unit or "days")


def load_nausea() -> PanelCounts:
    """Episodes of nausea between visits in the first year of a gallstone trial, in weeks.

    113 patients with floating gallstones of the National Cooperative Gallstone Study: 65 on a
    high dose of chenodiol (group A, ``treatment="high_dose"``), 48 on placebo (group B). The
    paper, which speaks of vomiting, uses the window (0, 55) for both groups although the last
    visit of group B is in week 54; so does this loader.

    Returns
    -------
    PanelCounts
        605 intervals; covariates ``group`` and ``treatment``.

    Notes
    -----
    * Patient 25 has 99 episodes in (38, 52] and none before, a third of all of group A. It is not
      known whether 99 is a count, a limit or a code for "missing"; it is kept.
    * Two patients (20 and 33) have a last count without a visit time in the source, 0 and 6;
      these are left out, as in the paper.
    * Large counts look rounded: 20, 30, 40, 60.

    References
    ----------
    P. F. Thall and J. M. Lachin (1988), "Analysis of recurrent events: nonparametric methods for
    random-interval count data", J. Am. Stat. Assoc. 83, 339-347.
    """
    return PanelCounts.from_frame(_table("nausea"), window=(0.0, 55.0), time_unit="weeks")


def load_bladder() -> PanelCounts:
    """New bladder tumours between visits, in months.

    85 patients of a trial of the Veterans Administration Cooperative Urological Research Group,
    the arms thiotepa (group A, 38 patients) and placebo (group B, 47), only patients with
    follow-up. The paper, which speaks of weeks, uses the window (0, 53) for both groups although
    the last visit of group A is in month 51; so does this loader.

    Returns
    -------
    PanelCounts
        920 intervals; covariates ``group``, ``treatment``, ``initial_size`` (largest initial
        tumour, cm) and ``initial_number`` (8 stands for 8 or more), and per interval
        ``count_code`` (``exact``, ``ge8`` or ``unknown``).

    Notes
    -----
    * The two counts of 9 (subject 46 in month 41, subject 69 in month 36) stand for an unknown
      number: other sources have it missing, or 1. The paper takes them as 9, and they are kept.
    * A count of 8 very likely means 8 or more, as it does for the initial number.
    * Follow-up is cut at month 53; seven patients were seen longer, without further tumours.
    * Widespread versions of these data list only visits with a tumour and the end of follow-up,
      so that their intervals end because of what was found there. These list all visits.

    References
    ----------
    D. P. Byar (1980), in *Bladder Tumors and Other Topics in Urological Oncology*, Plenum,
    363-370. D. F. Andrews and A. M. Herzberg (1985), *Data*, Springer. As panel counts: J. Sun
    and L. J. Wei (2000), J. R. Stat. Soc. B 62, 293-302.
    """
    return PanelCounts.from_frame(_table("bladder"), window=(0.0, 53.0), time_unit="months")


def load_skin(*, event: str | None = None, unit: str = "days") -> PanelCounts:
    """New skin cancers between visits, as the paper used them.

    290 patients of a trial of difluoromethylornithine (DFMO) at the University of Wisconsin: 143
    on the drug (``treatment="dfmo"``), 147 on placebo. The paper's Skin A and B are the basal and
    squamous cell cancers under DFMO, C and D those under placebo. :func:`load_skin_full` has the
    complete record; use that for anything but a comparison with the paper.

    Parameters
    ----------
    event : {"all", "basal", "squamous"}, optional
        Which cancers to count; default both, as types of events. "all" adds them up.
    unit : {"days", "paper"}
        ``"paper"`` divides the days by 30.

    Returns
    -------
    PanelCounts
        2490 intervals; covariates ``treatment``, ``prior_tumors`` (skin cancers before the
        trial), ``age`` (years at enrolment) and ``sex``. The window reaches to the largest visit
        time, day 1879; the paper uses that of each arm: ``with_window((0, 1847))`` under DFMO,
        or 1847 / 30 in its unit.

    Notes
    -----
    * A subject has at most 12 visits here; 32 later visits of 14 subjects, with 23 cancers, and
      one visit of subject 81 (day 1788, none) are missing.
    * Four counts differ from the complete record: subjects 42 (day 554), 91 (day 394) and 161
      (day 741), squamous; subject 268 (day 191), basal. Which is right is not known.
    * The paper's table gives 816 and 887 distinct intervals for the two arms. Its program counts
      keys rounded to 32-bit integers, on which different intervals coincide; there are 1102 and
      1210.
    * Intervals last from 1 to 1126 days, and one of a single day can hold an event.

    References
    ----------
    H. H. Bailey et al. (2010), Cancer Prev. Res. 3, 35-47.
    """
    return _skin(_table("skin"), event, unit)


def load_skin_full(*, event: str | None = None, unit: str = "days") -> PanelCounts:
    """New skin cancers between visits, complete record; see :func:`load_skin`.

    The same trial and subjects with the visits that :func:`load_skin` lacks: up to 17 visits per
    subject. Totals are nearer to those of the trial's report (163 basal and 260 cancers in all
    under DFMO, 243 and 363 under placebo, 291 patients): 162 and 257, 245 and 361.

    Parameters
    ----------
    event : {"all", "basal", "squamous"}, optional
        Which cancers to count; default both, as types of events. "all" adds them up.
    unit : {"days", "paper"}
        ``"paper"`` divides the days by 30.

    Returns
    -------
    PanelCounts
        2523 intervals; covariates as there, and per interval ``in_skin_csv``: ``same``,
        ``differs`` (the counts disagree) or ``absent`` (no such interval there).

    Notes
    -----
    The record is that of the data set skinTumor in version 1.0.9 of the R package spef, with
    subjects renumbered: all 290 match uniquely in visit times, arm, age, sex and prior tumours.
    """
    return _skin(_table("skin_full"), event, unit)


def load_cgd() -> PanelCounts:
    """Serious infections of patients with chronic granulomatous disease, in days.

    128 patients of a trial of gamma interferon (63 patients) against placebo (65) in 13 centres
    of Europe and the United States, 4 to 26 patients each: an example with centres and strata.

    Returns
    -------
    PanelCounts
        487 intervals with 76 infections, 20 of them under interferon; covariates ``centre``,
        ``treatment``, ``sex``, ``age`` (years), ``inheritance`` (``X-linked`` or ``autosomal``),
        ``steroids`` and ``antibiotics`` (0 or 1, at the start) and ``hospital`` (a coarser place
        than the centre).

    Notes
    -----
    * The source has the exact day of every infection. Here they are counted at visits every 90
      days and at the end of follow-up; these visits are made up, so that the data are panel counts.
    * The last interval is what follow-up leaves of 90 days, down to a single day.
    * Follow-up ends with the trial, which was stopped early; one patient's ends on the day of an
      infection.
    * Most patients (84) have no infection; one on placebo has 7.

    References
    ----------
    The International Chronic Granulomatous Disease Cooperative Study Group (1991), New Engl. J.
    Med. 324, 509-516. T. R. Fleming and D. P. Harrington (1991), *Counting Processes and Survival
    Analysis*, Wiley, appendix D.
    """
    return PanelCounts.from_frame(_table("cgd"), time_unit="days")


#: loaders without options
_PLAIN = {"nausea": load_nausea, "bladder": load_bladder, "cgd": load_cgd}


def _check_name(name: str) -> None:
    if name not in _DESCRIPTIONS:
        raise PanelDataError(
            f"there is no data set {name!r}; {unknown_name(name, list_datasets())}"
        )


def _table(name: str) -> pd.DataFrame:
    import pandas as pd

    with (resources.files("gp4c.data.datasets") / f"{name}.csv").open("rb") as file:
        return pd.read_csv(file)


def _skin(table: pd.DataFrame, event: str | None, unit: str) -> PanelCounts:
    """Count both types of cancer, one, or all together, in the unit asked for."""
    if event is not None:
        check_choice("event", event, ("all", *_CANCERS))
    check_choice("unit", unit, ("days", "paper"))
    names = {"count": "all"} | {f"count_{cancer}": cancer for cancer in _CANCERS}
    table = table.rename(columns=names)
    counts = list(_CANCERS) if event is None else [event]
    table = table.drop(columns=[c for c in names.values() if c not in counts])
    options: dict[str, Any] = {"time_unit": "days"}
    if unit == "paper":
        table[["start", "stop"]] = table[["start", "stop"]] / PAPER_MONTH
        options["time_unit"] = "30-day months"
    return PanelCounts.from_frame(table, count=counts[0] if event else counts, **options)
