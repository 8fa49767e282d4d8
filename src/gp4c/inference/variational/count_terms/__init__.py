"""Count terms: how E ln ∫ f² of an interval enters the bound. Each is one class in one file."""

from gp4c.inference.variational.count_terms.count_term import COUNT_TERMS, CountTerm, count_term
from gp4c.inference.variational.count_terms.exact import Exact
from gp4c.inference.variational.count_terms.lemma2 import Lemma2
from gp4c.inference.variational.count_terms.pointwise import Pointwise

__all__ = ["COUNT_TERMS", "CountTerm", "Exact", "Lemma2", "Pointwise", "count_term"]
