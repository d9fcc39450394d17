"""A price that is partly known bars nothing where no money is limited.

Limits, tiers and charges in a builder's own candidates: `test_candidates.py`.
"""

from types import SimpleNamespace

import pytest

from gateway.fleet.partly_priced import bar_partly_priced
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

ASKED = RoutingRequest(RequestKind.CHAT, "m", 10, 20, 5, OutputMoments(0, 1.0, 1.0, 1.0))


@pytest.mark.parametrize(("room", "ceiling"), [(None, None), (5, None), (None, 5)])
def test_only_a_limit_on_money_bars(room, ceiling) -> None:
    candidate = SimpleNamespace(name="x/m", budget_room_pusd=room)
    entry = SimpleNamespace(
        candidate=candidate, price=None, unlimited=("page_cost",), unlisted_tier="scale"
    )
    judged = bar_partly_priced(ASKED, [entry], ceiling)
    if room is ceiling is None:
        assert judged is ASKED
        return
    reason, detail = judged.barred["x/m"]
    assert reason is Reason.PARTLY_PRICED
    assert "(page_cost, no price of service tier `scale`)" in detail
