"""A start stores what its sources add, and compares nothing where nothing has changed since."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, select, update

from ledger.database import make_engine, migrate
from ledger.orm.books import PriceImportRow, PriceVersionRow
from ledger.prices import start_prices
from ledger.prices.book import PriceError
from ledger.prices.bundled import BundledMap
from ledger.prices.drafts import diff
from ledger.prices.start_prices import (
    CODE_OUTSIDE,
    PriceSources,
    settled_prices,
    store_start_prices,
)
from ledger.prices.stored import import_drafts, stored_prices

NOW_US = 1_790_000_000_000_000
DAY_US = 86_400_000_000
ROOT = Path(__file__).parents[3] / "ledger"
ROW = (
    '{"litellm_provider": "openai", "mode": "chat", '
    '"input_cost_per_token": %s, "output_cost_per_token": 2e-06}'
)
FILE = "prices:\n  acme/own: {usd_per_million: {input: %s, output: 2}}\n"


def bundled(usd: str = "1e-06", name: str = "gpt-x") -> BundledMap:
    return BundledMap(f'{{"{name}": {ROW % usd}}}', "2026-10-21")


@pytest.fixture
def engine(database_url: str):
    migrate(database_url)
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each comparison row by row."""
    done: list[int] = []
    import_into = start_prices.import_into

    def count(*of, **how):
        done.append(1)
        return import_into(*of, **how)

    monkeypatch.setattr(start_prices, "import_into", count)
    return done


def start(engine: Engine, sources: PriceSources, at_us: int = NOW_US) -> int:
    """Return how many prices wait."""
    return store_start_prices(engine, sources, actor="me@here", at_us=at_us).waiting


def test_a_second_start_compares_nothing(engine, compared) -> None:
    sources = PriceSources(bundled(), (("own.yaml", FILE % 1),))
    assert settled_prices(engine, sources, NOW_US) is None
    assert start(engine, sources) == start(engine, sources, NOW_US + 1) == 0
    assert len(compared) == 1
    assert settled_prices(engine, sources, NOW_US) == stored_prices(engine)
    assert {price.name for price in stored_prices(engine)} == {"openai/gpt-x", "acme/own"}


@pytest.mark.parametrize(
    "other",
    [
        PriceSources(bundled(name="gpt-y")),
        PriceSources(BundledMap(bundled().text, "2026-10-22")),
        PriceSources(bundled(), (("own.yaml", FILE % 1),)),
    ],
    ids=["a-map", "its-day", "a-file"],
)
def test_other_sources_are_compared(engine, compared, other: PriceSources) -> None:
    start(engine, PriceSources(bundled()))
    start(engine, other)
    assert len(compared) == 2
    assert {draft.name for draft in other.drafts()} <= {p.name for p in stored_prices(engine)}


def test_the_order_and_the_names_of_files_count(engine, compared) -> None:
    files = (("a.yaml", FILE % 1), ("b.yaml", FILE % 3))
    start(engine, PriceSources(bundled(), files))
    start(engine, PriceSources(bundled(), files[::-1]))
    start(engine, PriceSources(bundled(), (("b.yaml", FILE % 1), ("a.yaml", FILE % 3))))
    assert len(compared) == 3


def edit(connection) -> None:
    price = connection.execute(select(PriceVersionRow.price)).scalar_one()
    price["terms"]["rates"]["input"] = 7
    connection.execute(update(PriceVersionRow).values(price=price))


def drop(connection) -> None:
    connection.execute(delete(PriceVersionRow))


def forget(connection) -> None:
    connection.execute(update(PriceImportRow).values(digest=None))


@pytest.mark.parametrize(("change", "waiting"), [(edit, 1), (drop, 0), (forget, 0)])
def test_what_was_changed_in_the_ledger_is_seen(engine, compared, change, waiting) -> None:
    sources = PriceSources(bundled())
    start(engine, sources)
    with engine.begin() as connection:
        change(connection)
    assert start(engine, sources, NOW_US + 1) == waiting
    assert len(compared) == 2
    assert len(stored_prices(engine)) == 1


def test_what_another_host_stored_is_compared(engine, compared) -> None:
    """Also by a program of before, which leaves no mark."""
    sources = PriceSources(bundled())
    start(engine, sources)
    import_drafts(engine, PriceSources(bundled(name="gpt-z")).drafts(), at_us=NOW_US + 1)
    start(engine, sources, NOW_US + 2)
    assert len(compared) == 2


def test_hosts_of_other_files_do_not_take_turns_for_ever(engine, compared) -> None:
    """Each has a mark of its own, once neither changes what the other one stored."""
    mine, other = PriceSources(bundled()), PriceSources(BundledMap(bundled().text, None))
    for sources in (mine, other, mine, other, mine):
        start(engine, sources)
    assert len(compared) == 2


def test_a_price_that_waits_is_told_at_each_start(engine) -> None:
    start(engine, PriceSources(bundled()))
    dearer = PriceSources(bundled("3e-06"))
    assert [start(engine, dearer, NOW_US + later) for later in (1, 2)] == [1, 1]


def test_other_code_compares_again(engine, compared, monkeypatch) -> None:
    sources = PriceSources(bundled())
    start(engine, sources)
    monkeypatch.setattr(start_prices, "_code_digest", lambda: b"older")
    start(engine, sources)
    assert len(compared) == 2


def test_a_clock_that_was_set_back_compares_again(engine, compared) -> None:
    sources = PriceSources(bundled())
    start(engine, sources)
    start(engine, sources, NOW_US - 1)
    assert len(compared) == 2


def test_faulty_files_store_nothing(engine) -> None:
    with pytest.raises(PriceError, match=r"own\.yaml"):
        start(engine, PriceSources(bundled(), (("own.yaml", "prices: {x: 3}"),)))
    assert stored_prices(engine) == []
    with engine.connect() as connection:
        assert connection.execute(select(PriceImportRow)).all() == []


DATES = st.sampled_from(["", ", from: 2026-09-01", ", from: 2026-11-01", ", until: 2026-10-01"])
ROWS = st.lists(st.tuples(st.sampled_from([1, 2]), DATES), min_size=1, max_size=3)


@given(st.lists(ROWS, min_size=1, max_size=3), st.integers(0, 3), st.integers(0, 90))
def test_what_has_nothing_to_store_has_nothing_later(files, before, days) -> None:
    """Therefore a mark counts for each later start."""
    texts = [
        "prices:\n  acme/own:\n"
        + "".join(
            f"  - {{usd_per_million: {{input: {usd}, output: 2}}{when}}}\n" for usd, when in rows
        )
        for rows in files
    ]
    stored: list = []
    for text in texts[:before] + texts[-1:]:
        try:
            drafts = PriceSources(bundled(), (("own.yaml", text),)).drafts()
            stored += diff(stored, drafts, at_us=NOW_US).prices(len(stored) + 1)
        except PriceError:  # stated twice
            return
    assert diff(stored, drafts, at_us=NOW_US).rows == ()
    assert diff(stored, drafts, at_us=NOW_US + days * DAY_US).rows == ()


def test_the_digest_covers_the_code_that_reads_and_compares() -> None:
    """Of what is imported outside of the folder, all but the tables and their database."""
    outside, left = set(), [*(ROOT / "prices").glob("*.py")]
    for path in left:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ledger."):
                place = ROOT.joinpath(*node.module.split(".")[1:]).with_suffix(".py")
                if place.exists() and place not in left:
                    outside.add(place.relative_to(ROOT).as_posix())
                    left.append(place)
    io = {name for name in outside if name.startswith(("orm/", "database", "write_lock", "locks"))}
    assert outside - io == set(CODE_OUTSIDE)
