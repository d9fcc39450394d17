"""Your keys over a gateway: made, shown once, rotated, revoked, each after a yes."""

import pytest

from dashboard.page import keys
from ledger.identity.keychanges import known_keys
from ledger.identity.people import DashboardRole
from ledger.identity.vouchers import GATEWAY

ANN, JOE = "ann@example.com", "joe@example.com"
MEMBER = f"""
[people."{ANN}"]
role = "viewer"
teams = ["search"]
keys = {{team = "search", models = ["chat-large"], days = 30, tags = {{app = "web"}}}}
"""


@pytest.fixture(scope="module")
def gateway(books, serving):
    found = serving(books(days=2, peak=2.0).url)
    access = found.state / "access.toml"
    access.write_text(access.read_text() + MEMBER)
    return found


@pytest.fixture
def looking(page_as):
    return lambda person=ANN: page_as("keys", person, DashboardRole.VIEWER)


def stored(gateway) -> dict:
    with gateway.engine.connect() as connection:
        return {key.id: key for key in known_keys(connection) if key.member == ANN}


def make(test, name: str):
    test.text_input(key="keys-name").set_value(name).run()
    test.button(key="keys-make").click().run()
    assert not test.exception
    return test


def follows(test, key: str) -> bool:
    """Whether the token stands where somebody has just pressed, right behind a button."""
    order = [button.key for button in test.button]
    return order[order.index(key) + 1 :][:1] == ["keys-stored"]


def test_a_member_makes_rotates_and_revokes_a_key(gateway, looking, text_of) -> None:
    test = make(looking(), "notebook")
    assert not stored(gateway), "the control: nobody has said yes"
    test.button(key="keys-yes").click().run()
    assert not test.exception
    (made,) = stored(gateway).values()
    assert (made.name, made.user, made.models, made.tags) == (
        "notebook", ANN, ["chat-large"], {"app": "web"},
    )  # fmt: skip
    (shown,) = [code.value for code in test.code]
    assert shown.startswith(f"gw_{made.id}_")
    assert follows(test, "keys-make"), "a phone shows nothing above what was pressed"
    assert test.success[0].value == f"Key {made.id} is made."
    test.button(key="keys-stored").click().run()
    assert shown not in str([*test.code, text_of(test)])
    assert made.id in str(test.dataframe[-1].value)
    test.button(key="keys-rotate").click().run()
    test.button(key="keys-yes").click().run()
    second = next(key for key in stored(gateway).values() if key.line == made.id)
    assert test.code[0].value.startswith(f"gw_{second.id}_")
    assert follows(test, "keys-revoke")
    test.button(key="keys-stored").click().run()
    test.selectbox(key="keys-chosen").set_value(second.id).run()
    test.button(key="keys-revoke").click().run()
    test.button(key="keys-yes").click().run()
    assert not test.exception
    assert stored(gateway)[second.id].revoked_us is not None
    assert "1 of 20" in text_of(test)  # the old one goes on for an hour


def test_who_may_make_none_is_told_how(looking, text_of) -> None:
    test = looking(JOE)
    assert "does not have the scope `keys:own`" in text_of(test) or test.info
    assert not test.button
    assert "Nobody has signed in here" in text_of(looking(None))


def test_without_a_gateway_there_are_no_keys(page, month, monkeypatch, text_of) -> None:
    monkeypatch.delenv(GATEWAY, raising=False)
    assert "No gateway is named" in text_of(page("keys", month.url))


def test_money_is_read_exactly() -> None:
    used = [{"usage": {"day": {"cost_usd": usd}}} for usd in ("12.000000000001", "0.5")]
    assert keys._spent(used, "day") == 12_500_000_000_001
