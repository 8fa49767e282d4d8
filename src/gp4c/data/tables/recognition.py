"""Which column has which role: as the user says, or by usual names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gp4c.data.checks import unknown_name
from gp4c.data.tables.frames import Table
from gp4c.exceptions import PanelDataError

#: usual column names of each role, in lower case without punctuation
USUAL_NAMES = {
    "subject": "subject subjectid subj subjid id patient patientid pat patid pid unit unitid "
    "unitno serial serialno serialnumber machine device asset participant person individual case "
    "caseid usubjid resident residentid",
    "start": "start tstart from begin left t0 time0 lower starttime startdate entry",
    "stop": "stop tstop to end right t1 time1 upper stoptime stopdate endtime enddate exit",
    "count": "count counts n events nevents m ncount number failures nfailures y",
    "exposure": "exposure",
    "time": "time t date month months day days week weeks year years visitdate visdate visitdt "
    "visitday visitdy visitmonth visitweek visittime visdt vdate dateofvisit datevisit examdate "
    "inspectiondate inspectedon seenon adt ady svdtc svstdtc svstdy",
}
#: a column of this name may hold times, or the number of the visit
_PERHAPS_TIME = "visit"


@dataclass(frozen=True)
class Recognised:
    """Columns by role.

    Attributes
    ----------
    names : dict
        Column of each role that was given or recognised.
    undecided : dict
        Roles without a column, with those that may be it: none, or several.
    by_name : dict
        The part of `names` that was recognised.
    """

    names: dict[str, str]
    undecided: dict[str, list[str]] = field(default_factory=dict)
    by_name: dict[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which columns were recognised, if their names are not those of the roles."""
        told = [f"{name!r} as {role}" for role, name in self.by_name.items() if name != role]
        notes = [f"columns recognised by name: {', '.join(told)}"] if told else []
        if self.by_name.get("exposure") == "exposure":
            notes.append("column 'exposure' is used as exposure")
        return tuple(notes)


def recognise_columns(header: Sequence[str], given: Mapping[str, str | None]) -> Recognised:
    """Find the column of every role.

    Parameters
    ----------
    header : sequence of str
    given : mapping
        Role to column, None if it is to be recognised; an exposure may be absent.
    """
    names = {role: name for role, name in given.items() if name is not None}
    by_name: dict[str, str] = {}
    undecided: dict[str, list[str]] = {}
    for role in (role for role, name in given.items() if name is None):
        free = [name for name in header if name not in names.values()]
        found = usual_columns(role, free)
        if len(found) == 1:
            names[role] = by_name[role] = found[0]
        elif found or role != "exposure":
            undecided[role] = found
    return Recognised(names, undecided, by_name)


def resolve_columns(
    table: Table, given: Mapping[str, str | None]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Name the column of every role, or say which are not to be found.

    Returns
    -------
    names : dict
    notes : tuple of str
    """
    for role, name in given.items():
        if name is not None:
            table.column(name, role)
    header = list(table.columns)
    found = recognise_columns(header, given)
    if found.undecided:
        free = [name for name in header if name not in found.names.values()]
        raise PanelDataError("\n".join(not_recognised(found.undecided, free, table.source)))
    return found.names, found.notes


def looks_like_visits(header: Sequence[str], names: Mapping[str, str | None]) -> bool:
    """Whether a table without columns of start and stop has one of visit times.

    Parameters
    ----------
    header : sequence of str
    names : mapping
        Role to column as given; None where nothing was.
    """
    if names.get("start") is not None or names.get("stop") is not None:
        return False
    free = [name for name in header if name not in names.values()]
    if usual_columns("stop", free):
        return False
    return bool(usual_columns("time", free))


def usual_columns(role: str, header: Sequence[str]) -> list[str]:
    """Return the columns with a usual name for the role; the role's own name decides."""
    usual = USUAL_NAMES[role].split()
    plain = {name: re.sub(r"[^a-z0-9]", "", name.lower()) for name in header}
    found = [name for name in header if plain[name] in usual]
    exact = [name for name in found if plain[name] == role]
    return exact if len(exact) == 1 else found


def not_recognised(
    undecided: Mapping[str, list[str]], free: Sequence[str], source: str
) -> Iterator[str]:
    """Say which roles no column or several have a usual name for, all at once, and what helps."""
    for role, found in undecided.items():
        if found:
            listed = " and ".join(repr(name) for name in found)
            yield f"{source} has {listed}: say which is the {role}, with {role}=..."
    roles = [role for role in USUAL_NAMES if undecided.get(role) == []]
    if not roles:
        return
    asked = ", ".join(f"{role}=..." for role in roles)
    which = "which it is" if len(roles) == 1 else "which they are"
    missing = f"{source} has no column that looks like the {' or the '.join(roles)}"
    visits = [name for name in free if name.lower() == _PERHAPS_TIME]
    if {"start", "stop"} & set(roles) and visits:
        hint = f"for a table of visits pass time={visits[0]!r}, else"
    else:
        hint = unknown_name("", free) + ";"  # a role is no misspelt name
    if {"start", "stop"} <= set(roles) and not visits:
        asked += " (in a table of visits time=... in place of start and stop)"
    yield f"{missing}; {hint} say {which} with {asked}"
