"""The Policies page over a gateway: its own admin API, access file, ledger, and people."""

import time

import pytest

from dashboard.page import policies
from dashboard.viewer import Viewer
from ledger.identity.people import DashboardRole
from ledger.identity.vouchers import GATEWAY, KEY_FILE, KEY_FILE_VARIABLE
from ledger.policies import policies_in_force

ADA, JOE = "ada@example.com", "joe@example.com"
CALMER = "policies:\n- {name: calmer, slo: {ttft_ms: 9000, tpot_ms: 900}}\n"
WRONG = "policies:\n- {name: calmer, slo: {ttft: 9000}}\n"


@pytest.fixture
def looking(page_as):
    """The page as somebody; what the dashboard believes of them is said with it."""

    def look(person: str | None, role: DashboardRole = DashboardRole.ADMIN):
        return page_as("policies", person, role)

    return look


def put(test, text: str):
    test.text_area(key="policies-text").set_value(text).run()
    test.button(key="policies-apply").click().run()
    test.button(key="policies-yes").click().run()
    assert not test.exception
    return test


def test_an_admin_puts_a_set_in_force_and_the_books_say_who(gateway, looking, text_of) -> None:
    test = looking(ADA)
    assert "plain : every request" in " ".join(text_of(test).split())
    before = gateway.number
    put(test, CALMER)
    stored = policies_in_force(gateway.engine)
    assert stored is not None
    assert (stored.number, stored.actor) == (before + 1, ADA)
    test = looking(ADA)
    assert f"Set {stored.number}" in text_of(test)
    rows = test.dataframe[0].value
    assert (rows["set"][0], rows["by"][0]) == (stored.number, ADA)
    assert f"policies {stored.number} by {ADA}" in str(test.get("vega_lite_chart")[-1].proto)


def test_without_a_policy_it_says_what_acts(looking, text_of) -> None:
    test = put(looking(ADA), "policies: []\n")
    assert "default : every request, and promises nothing" in " ".join(text_of(test).split())


def test_what_the_dashboard_believes_of_somebody_opens_nothing(gateway, looking) -> None:
    """Control of the control: the button is there, since the dashboard takes him for an admin."""
    before = gateway.number
    test = put(looking(JOE, DashboardRole.ADMIN), CALMER.replace("9000", "8000"))
    assert f"{JOE} does not have the scope `policies:apply`" in test.error[0].value
    assert gateway.number == before


def test_a_fault_is_the_gateways_and_names_the_field(looking) -> None:
    test = looking(JOE, DashboardRole.VIEWER).text_area(key="policies-text").set_value(WRONG).run()
    assert "policies[0].slo.ttft" in test.error[0].value


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "words"),
    [(None, "has no role in this gateway's access file"), ("x@y.z", "x@y.z has no role")],
)
def test_who_has_no_role_there_sees_no_policy(looking, text_of, name, words) -> None:
    test = looking(name)
    assert words in test.warning[0].value
    assert "calmer" not in text_of(test)


@pytest.mark.long
def test_a_gateway_that_does_not_know_the_dashboard(
    gateway, looking, monkeypatch, tmp_path
) -> None:
    other = tmp_path / "other.key"
    other.write_bytes(b"x" * 32)
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(other))
    assert "The gateway does not know this dashboard" in looking(ADA).warning[0].value
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(gateway.state / KEY_FILE))
    assert not looking(ADA).warning, "the control"


def test_without_a_gateway_it_says_how_to_name_one(gateway, page, monkeypatch, text_of) -> None:
    monkeypatch.delenv(GATEWAY, raising=False)
    test = page("policies", gateway.url)
    assert GATEWAY in test.info[0].value
    assert KEY_FILE_VARIABLE in test.info[0].value
    assert "the share that spills" in text_of(test), "what the books know is there all the same"


@pytest.mark.long
def test_one_that_does_not_answer_is_said_so(gateway, looking, monkeypatch) -> None:
    monkeypatch.setenv(GATEWAY, "http://127.0.0.1:9")
    assert "The gateway does not answer" in looking(ADA).warning[0].value


@pytest.mark.long
def test_the_figures_of_a_what_if_are_the_apis(gateway, looking, text_of) -> None:
    test = looking(JOE, DashboardRole.VIEWER)
    test.text_area(key="policies-text").set_value(CALMER.replace("calmer", "other")).run()
    test.segmented_control(key="policies-span").set_value("7 d")
    test.selectbox(key="policies-most").set_value(2_000)
    test.default_timeout = 300
    test.button(key="policies-play").click().run()
    assert not test.exception
    assert not test.error, test.error
    from dashboard import admin_client  # noqa: PLC0415  (with the variables of `looking`)

    desk = admin_client.desk(lambda: Viewer(JOE, DashboardRole.VIEWER))
    while (found := desk.get("/policies/simulate"))["state"] == "running":
        time.sleep(0.5)  # the browser looks again by itself, this test does not
    test.run()
    assert (found["state"], found["by"]) == ("done", JOE)
    new, old = found["result"]["results"]
    text = text_of(test)
    assert f"${new['dollars']['total_usd']:,.2f}" in text
    assert f"{100 * new['spill']['share_by_count']:.1f} %" in text
    assert f"{100 * old['spill']['share_by_count']:.1f} %" in text
    assert time.time() * 1e6 > found["since_us"] > 0


def test_the_share_that_spills_is_of_those_that_own_engines_serve(gateway) -> None:
    class Moment:
        def __init__(self, start_us: int, backend: str, attempts: int, *, spilled: bool) -> None:
            self.start_us, self.backend = start_us, backend
            self.attempts, self.spilled = attempts, spilled

    class SeenPage:
        bucket_us = 60 * 10**6
        moments = (
            Moment(0, "own", 3, spilled=False), Moment(0, "api", 1, spilled=True),
            Moment(0, "api", 90, spilled=False), Moment(60 * 10**6, "api", 5, spilled=False),
        )  # fmt: skip

        def bucket_of(self, at_us: int) -> tuple[int, int]:
            return at_us, at_us + self.bucket_us

    (record,) = policies.spill_over_time(SeenPage())
    assert record["value"] == 0.25
