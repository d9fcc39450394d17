"""When a pool's section asks for anything at all."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_upkeep import UpkeepSection


@pytest.mark.parametrize(
    ("stated", "anything"),
    [
        ({}, False),
        ({"timezone": "Europe/Berlin", "patience_h": 1}, False),
        ({"restart": "0 4 * * SUN"}, True),
        ({"restart_on_decay": 0.15}, True),
        ({"stop": "0 20 * * *", "start": "0 7 * * *"}, True),
    ],
)
def test_there_is_something_to_do_when_a_time_or_a_loss_is_stated(stated, anything):
    assert UpkeepSection(**stated).any is anything


@pytest.mark.parametrize(
    "stated", [{"restart_on_decay": 0}, {"restart_on_decay": 1}, {"patience_h": 0}, {"cron": "x"}]
)
def test_what_has_no_meaning_is_refused(stated):
    with pytest.raises(ValidationError):
        UpkeepSection(**stated)
