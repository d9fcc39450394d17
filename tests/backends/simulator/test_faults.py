"""Trouble on request: queued, bounded, taken in order."""

import msgspec
import pytest

from backends.simulator.faults import Faults


def test_faults_strike_in_the_order_in_which_they_were_asked():
    faults = Faults()
    assert faults.add(b'{"fault":"status","status":503,"times":2}') == {"queued": 2}
    faults.add(b'{"fault":"cut","after_tokens":5}')
    assert [faults.next().fault for _ in range(3)] == ["status", "status", "cut"]
    assert faults.next() is None


def test_no_more_trouble():
    faults = Faults()
    faults.add(b'{"fault":"stall"}')
    faults.clear()
    assert faults.next() is None


@pytest.mark.parametrize(
    "body", [b"{}", b'{"fault":"fire"}', b'{"fault":"cut","times":0}', b'{"fault":"cut","x":1}']
)
def test_nonsense_is_refused(body):
    with pytest.raises(msgspec.ValidationError):
        Faults().add(body)
