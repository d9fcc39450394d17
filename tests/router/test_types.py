"""The values are plain, closed and comparable."""

import dataclasses

from router import types
from router.reasons import Reason
from router.types import Decision, InfeasibleAction


def test_reasons_are_distinct_words():
    assert len({reason.value for reason in Reason}) == len(Reason)
    assert all(reason.value == str(reason) == reason.name.lower() for reason in Reason)


def test_every_value_is_slotted_and_hashable():
    classes = [
        variable
        for variable in vars(types).values()
        if isinstance(variable, type) and dataclasses.is_dataclass(variable)
    ]
    assert len(classes) >= 8
    for class_name in classes:
        assert "__dict__" not in dir(class_name)
        assert class_name.__hash__ is not None


def test_nothing_is_chosen_when_nothing_is_in_order():
    empty = Decision("p", (), (), Reason.MODEL, InfeasibleAction.REJECT)
    assert empty.first_choice is None
