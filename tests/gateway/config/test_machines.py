"""A shared machine's rate is counted once, in parts that add up to it; pools must agree on it."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.config.machines import PPM, MachineShare, check_machines, machine_shares
from gateway.config.schema import Settings
from ledger.money import usd_to_pusd

ENGINE = {"model": "/models/a", "replicas": 1}
SHARED = """
pools:
  a:
    engine: {model: /models/a, replicas: 1}
    gpu: {type: H200, machine: box, usd_per_hour: 3.50, source: lease, since: 2026-11-01}
  b:
    engine: {model: /models/b, endpoints: ["http://10.0.0.5:8000/v1"]}
    gpu: {type: H200, machine: box, usd_per_hour: 3.50, source: lease, since: 2026-11-01, share: 3}
  c:
    engine: {model: /models/c, replicas: 4}
    gpu: {type: L4, usd_per_hour: 1}
"""

PART_OF_NOTHING = (
    "pools.c.gpu.share: is a part of a shared machine: name it in `machine`, here and in its pools"
)


def settings_of(text: str) -> Settings:
    settings = draft_settings(read_document(text)).settings
    assert settings is not None
    return settings


def test_parts_are_in_proportion_and_pools_of_their_own_pay_all():
    assert machine_shares(settings_of(SHARED)) == {
        "a": MachineShare(875_000_000_000, "box", 250_000),
        "b": MachineShare(2_625_000_000_000, "box", 750_000),
        "c": MachineShare(10**12),
    }


@given(
    rate=st.none() | st.decimals(0, 1000, places=12),
    shares=st.lists(st.decimals("0.000001", 1000, places=6), min_size=1, max_size=6),
)
def test_parts_add_up_to_the_rate_to_the_unit(rate, shares):
    gpu = {"type": "H200", "machine": "box", "usd_per_hour": rate}
    pools = {
        f"p{n}": {"engine": ENGINE, "gpu": {**gpu, "share": share}}
        for n, share in enumerate(shares)
    }
    found = machine_shares(Settings.model_validate({"pools": pools}))
    assert sum(part.share_ppm for part in found.values()) == PPM
    rates = [part.pusd_per_hour for part in found.values()]
    if rate is None:
        assert rates == [None] * len(shares)
    else:
        assert sum(rates) == usd_to_pusd(rate)
        exact = [Decimal(usd_to_pusd(rate)) * share / sum(shares) for share in shares]
        assert all(
            abs(Decimal(each_rate) - want) < 1 for each_rate, want in zip(rates, exact, strict=True)
        )


def test_the_sound_file_has_no_faults():
    assert list(check_machines(settings_of(SHARED))) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("3.50, source: lease, since: 2026-11-01, share", "3.60, source: lease, share",
         ["pools.b.gpu.usd_per_hour: differs from pools.a.gpu.usd_per_hour, and both are on `box`",
          "pools.b.gpu.since: differs from pools.a.gpu.since, and both are on `box`"]),
        ("gpu: {type: L4, usd", "gpu: {type: L4, share: 2, usd",
         [PART_OF_NOTHING]),
        ("model: /models/a, replicas: 1", "model: /models/a, replicas: 2",
         ["pools.a.gpu.machine: `box` is shared: each of its pools runs one engine there"]),
        ("type: H200, machine", "type: H200, billing: on_demand, machine",
         [f"pools.{name}.gpu.billing: `box` is shared, and when it runs is not seen: use "
          "`reserved` or `owned`" for name in "ab"]),
    ],
)  # fmt: skip
def test_what_cannot_be_shared_is_said_with_its_fix(before, after, said):
    assert before in SHARED
    found = check_machines(settings_of(SHARED.replace(before, after)))
    assert [fault.text("f") for fault in found] == [f"f: {line}" for line in said]


def test_a_machine_of_one_pool_is_that_pools():
    text = SHARED.replace("machine: box", "billing: on_demand, machine: box", 1).replace(
        "machine: box, usd_per_hour: 3.50, source: lease, since: 2026-11-01, share: 3",
        "usd_per_hour: 1",
    )
    settings = settings_of(text)
    assert list(check_machines(settings)) == []
    assert machine_shares(settings)["a"] == MachineShare(usd_to_pusd(Decimal("3.50")), "box", PPM)
