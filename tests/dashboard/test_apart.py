"""A viewer of one team learns nothing of another: no page, choice, address or download says it.

The books have two teams. One is a canary: its name is a rare word, and its figures are so large
that a sum of both teams is within a thousandth of them. Everything that a page sends to the
browser is searched: words, choices, tables, what charts are drawn from. The control looks with the
eyes of somebody who sees all, and finds the canary.
"""

import io
import pickle
import re
import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import streamlit as st
from msgspec.structs import replace
from sqlalchemy import insert
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from dashboard import downloads, navigation, viewer_identity
from dashboard.data import allocation, claims, days, entries, fleet, invoices, reads, tags
from dashboard.viewer import NotAllowed, Viewer, ViewerScope
from ledger.database import make_engine
from ledger.identity.people import DashboardRole
from ledger.journals.records import RequestRefused, TokenCounts
from ledger.manual_entries import MUTE, ManualEntry, enter
from ledger.orm import tables as orm
from ledger.reports.muting import series_of
from ledger.writing.repository import LedgerRepository

S, HOUR = 10**6, 3_600 * 10**6
OWN, CANARY = "alpha", "canary-beta"
COST_PUSD = 76_543_210_000_000_000  # $76,543.21
TOKENS = 88_888_888
USED_PUSD = 55_443_320_000_000_000  # $55,443.32
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?:e[+]?\d+)?")
NEAR = 1.001
SCALES = (1, 1e-12)  # in pico-dollars and in dollars
FIGURES = [
    element * scale for element in (COST_PUSD, USED_PUSD, COST_PUSD + USED_PUSD) for scale in SCALES
]
FIGURES += [TOKENS, 2 * TOKENS]
KEEPER = "keeper-of-all-books"  # who muted a series of each team
WORDS = (CANARY, KEEPER, "88.9M", "178M")
FILE = f"""
[auth]
client_id = "c"
[people."eve@example.com"]
role = "viewer"
teams = ["{OWN}"]
[people."ada@example.com"]
role = "admin"
"""
SCOPED = "eve@example.com"
PATHS = [place.module.__name__.rpartition(".")[2] for place in navigation.PLACES]


@pytest.fixture(scope="module")
def two(books):
    """Some minutes of one team; one answer each of the canary's by an API and its own engines."""
    filled = books(days=3, peak=0.0, teams=(OWN,))
    spilled = next(pair for pair in filled.pairs if pair[0].backend == "api")
    own = next(pair for pair in filled.pairs if pair[0].backend == "own")
    records = []
    for n, (opened, settled) in enumerate((spilled, own)):
        attempt = f"canary{n}.1"
        records.append(
            replace(
                opened, attempt_id=attempt, request_id=f"canary{n}", team_id=CANARY,
                key_id="kc", opened_us=filled.now_us - 2 * HOUR, tags=(("app", CANARY),),
            )
        )  # fmt: skip
        records.append(
            replace(
                settled, attempt_id=attempt, settled_us=filled.now_us - 2 * HOUR + S,
                cost_pusd=COST_PUSD if opened.backend == "api" else USED_PUSD,
                tokens=TokenCounts(input=TOKENS, output=9),
            )
        )  # fmt: skip
    records.append(
        RequestRefused(
            "canaryx", filled.now_us - HOUR, "kc", CANARY, "acme", "chat-large", "default",
            "budget", 429, f"team:{CANARY}",
        )
    )  # fmt: skip
    engine = make_engine(filled.url)
    LedgerRepository(engine, host="here").import_records(
        records, journal="canary", at_us=filled.now_us
    )
    with engine.begin() as connection:
        hour_us = filled.hours[-2]["hour_us"]
        connection.execute(
            insert(orm.GpuHourTeamRow),
            [{"pool": "llama-70b", "hour_us": hour_us, "team_id": CANARY, "used_pusd": USED_PUSD,
              "provisional_pusd": USED_PUSD, "engine_us": S}],
        )  # fmt: skip
        for team in (OWN, CANARY):
            mute = MUTE + series_of("team", team)
            enter(connection, ManualEntry(0, mute, {"muted": True}, hour_us, hour_us, KEEPER))
    engine.dispose()
    return filled


@pytest.fixture
def app(two, tmp_path, monkeypatch):
    """The whole dashboard as somebody who has signed in; at a page, with an address."""
    path = tmp_path / "access.toml"
    path.write_text(FILE)
    monkeypatch.setenv("BREAKEVEN_LEDGER_URL", two.url)
    monkeypatch.setenv(viewer_identity.FILE_VARIABLE, str(path))

    def run(name: str, page: str = "answer", **address: str) -> AppTest:
        test = AppTest.from_file(str(navigation.__file__).replace("navigation.py", "app.py"))
        test.default_timeout = 60
        test.user = {
            "is_logged_in": True, "email": name, "email_verified": True, "iat": time.time(),
        }  # fmt: skip
        for key, value in address.items():
            test.query_params[key] = value
        test._page_hash = calc_hash("" if page == "answer" else page)
        test.run()
        assert not test.exception, test.exception
        return test

    yield run
    st.cache_resource.clear()


def sent(message) -> Iterator[str]:
    """All that a message to the browser holds, tables unpacked."""
    for field, value in message.ListFields():
        for item in value if field.is_repeated else [value]:
            if isinstance(item, bytes):
                try:
                    yield str(pa.ipc.open_stream(item).read_all().to_pydict())
                except pa.ArrowInvalid:
                    yield item.decode("utf-8", "replace")
            elif hasattr(item, "ListFields"):
                yield from sent(item)
            else:
                yield str(item)


def hits(text: str) -> list[str]:
    """Where the canary sings."""
    found = [word for word in WORDS if word in text]
    for number in NUMBER.findall(text):
        value = float(number.replace(",", ""))
        found += [number for item in FIGURES if item / NEAR <= value <= item * NEAR]
    return found


def shown(test: AppTest) -> list[str]:
    """Every text as it is read: Markdown's escapes would hide the canary's name."""
    texts = []
    for node in test._tree:
        proto = getattr(node, "proto", None)
        if proto is not None:
            texts += (text.replace("\\", "") for text in sent(proto))
    return texts


def sung(test: AppTest) -> list[str]:
    return [hit for text in shown(test) for hit in hits(text)]


def walks(test: AppTest) -> Iterator[AppTest]:
    """The page, and again with each of its switches turned and each choice taken."""
    yield test
    for kind in ("toggle", "segmented_control"):
        for key in [item.key for item in test.get(kind) if item.key not in (None, "live")]:
            if kind == "toggle":
                test.toggle(key=key).set_value(True)
                yield test.run()
            else:
                for option in test.segmented_control(key=key).options[-2:]:
                    test.segmented_control(key=key).set_value(option)
                    yield test.run()


QUICK = {"spend", "routing"}  # the others are in the long tier


def some(names: list[str]) -> list:
    """Those that every commit waits for, and those that it does not."""
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in names]


@pytest.mark.parametrize("page", some(PATHS))
def test_no_page_tells_of_the_other_team(app, page: str) -> None:
    for test in walks(app(SCOPED, page)):
        assert not test.exception
        assert sung(test) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "address", [{"team": CANARY}, {"team": "All teams"}, {"request": "canary0"},
                {"request": "canary1", "team": CANARY}],
)  # fmt: skip
def test_no_address_tells_of_it(app, address: dict[str, str]) -> None:
    test = app(SCOPED, "spend", **address)
    assert [item for item in sung(test) if item not in address.values()] == []
    assert test.selectbox(key="team").options == [OWN]
    assert test.selectbox(key="team").value == OWN
    assert "canary0.1" not in "".join(shown(test))


@pytest.mark.parametrize("page", some(["answer", "breakeven", "spend", "routing", "audit"]))
def test_control_who_sees_all_sees_it(app, page: str) -> None:
    assert sung(app("ada@example.com", page)) != []


@pytest.mark.long
def test_pages_of_the_house_are_not_there_for_a_team(app, two) -> None:
    """Asked for by their addresses, they say so; what they read is refused anyway."""
    for page in ("breakeven", "engines", "policies", "plan", "audit"):
        test = app(SCOPED, page)
        (said,) = [warning.value for warning in test.warning]
        assert "is not for a viewer of" in said
        assert "As of " not in " ".join(caption.value for caption in test.caption)


def files(view: reads.DashboardView) -> Iterator[str]:
    yield downloads.attempts_csv(view).decode()
    yield str(pq.read_table(io.BytesIO(downloads.attempts_parquet(view))).to_pydict())
    yield downloads.focus_csv(view).decode()


def view_of(two, team: str | None, viewer: Viewer) -> reads.DashboardView:
    return reads.DashboardView(two.url, "30 d", team, two.now_us, who=lambda: viewer)


EVE = Viewer(SCOPED, DashboardRole.VIEWER, (OWN,))


def test_no_download_tells_of_it(two) -> None:
    assert [hits(file) for file in files(view_of(two, OWN, EVE))] == [[], [], []]
    for team in (CANARY, None):
        for make in (downloads.attempts_csv, downloads.attempts_parquet, downloads.focus_csv):
            with pytest.raises(NotAllowed):
                make(view_of(two, team, EVE))


def test_control_a_download_of_all_tells_of_it(two) -> None:
    assert all(hits(file) for file in files(view_of(two, None, viewer_identity.AT_THIS_MACHINE)))


READS = {
    name: variable
    for module in (allocation, reads, claims, days, entries, fleet, invoices, tags)
    for name, variable in vars(module).items()
    if hasattr(variable, "reach")
}
GIVEN = {
    "attempts": ((), 5), "attempts_of": ("canary0",), "bill": (1,), "changes": (5,),
    "charged_by": (("pool:none",),), "mutes": ("team",),
    "spend_of_tag": ("product",), "spend_of_groups": ((f"app={CANARY}",),),
    "details": ("canary0.1",), "newest_policy_sets": (5,), "recent": (5,),
    "attempts_of_key": ("kc", (), 5), "spent": ("team", HOUR), "spent_by_key": (HOUR,),
    "tries": ("canary0",), "streamed": (5,), "senders": (("api/mini",),), "ttft_pairs": (5,),
    "slo_attainment": (5,), "verifications": (5,),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(READS))
def test_every_read_refuses_what_is_not_ones_own(two, name: str) -> None:
    """Whatever a page does with it: also what was read before and is remembered."""
    call, given = READS[name], GIVEN.get(name, ())
    if name not in ("bill", "verify_now"):  # there is no bill; the checks take long
        call(view_of(two, None, viewer_identity.AT_THIS_MACHINE), *given)
    if call.reach is ViewerScope.NAMES:
        return
    for team in (CANARY, None, *((OWN,) if call.reach is not ViewerScope.TEAM else ())):
        with pytest.raises(NotAllowed):
            call(view_of(two, team, EVE), *given)


OF_A_TEAM = sorted(name for name, call in READS.items() if call.reach is ViewerScope.TEAM)


@pytest.mark.parametrize("name", OF_A_TEAM)
def test_what_is_remembered_for_who_sees_all_is_not_given_to_a_team(two, name: str) -> None:
    """One process draws for all: what it keeps is shared by those who asked for the same rows."""
    call, given = READS[name], GIVEN.get(name, ())
    whole = call(view_of(two, None, viewer_identity.AT_THIS_MACHINE), *given)
    own = call(view_of(two, OWN, EVE), *given)
    assert own is not whole
    assert hits(repr(own)) == []
    assert call(view_of(two, OWN, viewer_identity.AT_THIS_MACHINE), *given) is own, (
        "it is remembered"
    )


@pytest.mark.parametrize("page", some(PATHS))
def test_no_page_changes_what_is_remembered_for_the_others(
    app, two, page: str, monkeypatch
) -> None:
    seen: dict[int, tuple[object, bytes]] = {}

    def spied(call):
        def spy(view, *given):
            found = call(view, *given)
            seen.setdefault(id(found), (found, pickle.dumps(found)))
            return found

        return spy

    for module in (reads, entries, fleet, tags):
        for name, call in READS.items():
            if getattr(module, name, None) is call:
                monkeypatch.setattr(module, name, spied(call))
    for name in ("ada@example.com", SCOPED):
        for test in walks(app(name, page)):
            assert not test.exception
    assert seen, "the control: what the page read was seen"
    changed = [item for item, before in seen.values() if pickle.dumps(item) != before]
    assert changed == []


def test_a_team_is_told_that_its_own_series_is_muted(two, app) -> None:
    """Not by whom: who keeps everyone's books is of the house."""
    (entry,) = entries.mutes(view_of(two, OWN, EVE), "team")
    assert entry.name == series_of("team", OWN)
    words = "".join(shown(app(SCOPED, "spend")))
    assert f"Muted: {OWN}," in words
    assert KEEPER not in words
    assert KEEPER in "".join(shown(app("ada@example.com", "spend")))


def test_one_attempt_of_the_other_team_has_no_details(two) -> None:
    view, all_of_it = view_of(two, OWN, EVE), view_of(two, None, viewer_identity.AT_THIS_MACHINE)
    assert reads.details(view, "canary0.1") == ([], None)
    assert reads.tries(view, "canary0") == []
    assert reads.details(all_of_it, "canary0.1")[0] != []


def test_whatever_opens_the_ledger_is_a_read() -> None:
    """A function of `reads` that took an address past `@read` would be asked by a page one day."""
    free = {
        "P", "T", "DashboardView", "argument", "engine", "exported", "query", "read",
        "ledger_url", "lag",
        "upkeep", "drift", "rounded_now_us", "bucket_us", "InvoiceDetail", "WriteCounter",
        "forget_reads",
    }  # fmt: skip
    own = {
        name
        for module in (allocation, reads, claims, days, entries, fleet, invoices, tags)
        for name, variable in vars(module).items()
        if not name.startswith("_") and getattr(variable, "__module__", "") == module.__name__
    }
    assert own - free == set(READS)
