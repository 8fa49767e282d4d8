"""Why a law of counts and effects was chosen, in words."""

from __future__ import annotations

import math

from gp4c.model.laws import EFFECTS, LAWS
from gp4c.plain import odds

Names = tuple[str, str | None]

#: below these odds the data hardly tell two laws apart
_TELLING = math.log(3.0)


def choice_words(chosen: Names, evidences: dict[Names, float]) -> str:
    """Say which of the laws compared was taken, and what the evidence says of the next."""
    others = {names: value for names, value in evidences.items() if names != chosen}
    if not others:
        return "as asked"
    rival = max(others, key=lambda names: others[names])
    gain = evidences[chosen] - others[rival]
    ours, theirs = _law(*chosen), _law(*rival)
    if gain >= _TELLING:
        return f"the data favour {ours} over {theirs} ({odds(gain)})"
    if gain > -_TELLING:
        return f"the data hardly tell {ours} from {theirs} ({odds(gain)})"
    return f"{ours}, to be safe: the data lean to {theirs} without ruling it out ({odds(gain)})"


def _law(law: str, effect: str | None) -> str:
    return f"{LAWS[law].noun or law} {EFFECTS[effect].noun or f'with effects {effect}'}"
