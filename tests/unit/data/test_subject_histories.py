"""What is known of subjects, summed up by subject."""

import numpy as np
from numpy.testing import assert_allclose

import gp4c
from gp4c.data.subject_histories import SubjectHistories


def test_of_subjects_who_were_never_seen_nothing_is_expected():
    histories = SubjectHistories(
        np.array(["a", "b", "c", "d", "e"], dtype=object), np.zeros(5),
        np.array([1, 1, 3]), np.array([0.0, 4.0, 0.0]), np.array([1.0, 5.0, 2.0]),
        np.array([1.0, 2.0, 3.0]), np.zeros(0, dtype=int), *np.zeros((4, 0)),
    )  # fmt: skip
    integrals = np.array([[10.0, 20.0, 30.0], [1.0, 0.0, 2.0]])
    assert_allclose(histories.expected(integrals), [[0, 50, 0, 90, 0], [0, 1, 0, 6, 0]])
    chosen = histories.take(np.array([4, 3, 1]))
    assert chosen.subjects.tolist() == ["e", "d", "b"]
    assert_allclose(chosen.span_start, [0.0, 0.0, 4.0])
    assert_allclose(chosen.expected(integrals[:, [2, 0, 1]]), [[0, 90, 50], [0, 6, 1]])
    nobody = histories.take(np.array([0, 2]))
    assert_allclose(nobody.expected(np.zeros((2, 0))), np.zeros((2, 2)))


def test_a_subject_asked_for_twice_has_its_history_twice():
    histories = SubjectHistories.of(gp4c.load_dataset("bladder"))
    once, twice = histories.take(np.array([3, 7])), histories.take(np.array([7, 3, 7]))
    assert list(twice.subjects) == [histories.subjects[k] for k in (7, 3, 7)]
    for copy in (0, 2):
        rows, alone = twice.row_subject == copy, once.row_subject == 1
        np.testing.assert_array_equal(twice.row_count[rows], once.row_count[alone])
        np.testing.assert_array_equal(twice.row_start[rows], once.row_start[alone])
        assert twice.span_stop[twice.span_subject == copy] == once.span_stop[once.span_subject == 1]
