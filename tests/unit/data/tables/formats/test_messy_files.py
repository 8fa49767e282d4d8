"""Every messy file of the corpus is read right, or refused with the advice that helps."""

import pytest

from messy_files import CORPUS, verdict


@pytest.mark.parametrize("messy", CORPUS, ids=lambda messy: messy.name)
def test_a_messy_file_is_read_right_or_refused_with_advice(messy, tmp_path):
    assert verdict(messy, tmp_path) == ""


def test_the_corpus_is_large_enough_and_has_both_kinds():
    assert len(CORPUS) >= 60
    assert len({messy.name for messy in CORPUS}) == len(CORPUS)
    assert 20 <= sum(bool(messy.advice) for messy in CORPUS) <= len(CORPUS) - 40
