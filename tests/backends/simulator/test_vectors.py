"""Embeddings without a model."""

import pytest

from backends.simulator.vectors import VECTOR_SIZE, in_base64, vector


def test_vectors_have_length_one_and_depend_on_the_text():
    found = vector(b"text")
    assert len(found) == VECTOR_SIZE
    assert sum(value * value for value in found) == pytest.approx(1.0)
    assert found == vector(b"text") != vector(b"other")


def test_base64_holds_four_bytes_a_number():
    assert len(in_base64([0.0] * 3)) == 16
