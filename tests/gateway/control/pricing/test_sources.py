"""Where prices are read from, and what is no source."""

import os
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from gateway.control.pricing.sources import read_text, source_of
from ledger.prices.book import PriceError
from ledger.prices.bundled import bundled_seed, diff
from ledger.prices.drafts import APPROVED_RANK

NOW_US = int(datetime(2026, 11, 21, tzinfo=UTC).timestamp()) * 1_000_000
CSV = "name,input_usd_per_million,output_usd_per_million\nopenai/gpt-4o,1,2\n"
YAML = "prices: {openai/gpt-4o: {usd_per_million: {input: 1, output: 2}}}\n"
MAP = """{"gpt-4o": {"litellm_provider": "openai", "mode": "chat",
 "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}"""


@pytest.fixture(scope="module")
def stored():
    return diff([], bundled_seed().drafts, at_us=0).prices(1)


def read(name, *, book=None, configured=(), stored=()):
    return source_of(read_text(str(name)) or str(name), book, configured, stored, NOW_US)


@pytest.mark.parametrize(("name", "text"), [("deal.csv", CSV), ("deal.yaml", YAML)])
def test_a_file_is_a_book_of_its_name(tmp_path: Path, name, text):
    path = tmp_path / name
    path.write_text(text)
    found = read(path)
    assert (found.book, found.stamp.origin) == (name, name)
    assert found.stamp.digest == sha256(text.encode()).hexdigest()
    assert [(draft.name, draft.book, draft.rank) for draft in found.drafts] == [
        ("openai/gpt-4o", name, APPROVED_RANK)
    ]
    assert read(path, book="contract").book == "contract"


def test_a_newer_map_of_litellm_is_its_book(tmp_path: Path):
    path = tmp_path / "map.json"
    path.write_text(MAP)
    os.utime(path, (1_790_000_000, 1_790_000_000))
    found = read(path)
    assert (found.book, found.stamp.read_on) == ("litellm", "2026-09-21")
    assert [(draft.name, draft.rank, draft.source_date) for draft in found.drafts] == [
        ("openai/gpt-4o", 0, "2026-09-21")
    ]


def test_the_installed_map():
    found = read("litellm")
    assert found.stamp.origin.startswith("litellm 1.")
    assert len(found.drafts) > 3000
    assert found.refused


def test_genai_prices_states_what_differs_from_the_lists(stored):
    found = read("genai-prices", stored=stored)
    names = {draft.name for draft in found.drafts}
    assert "groq/openai/gpt-oss-safeguard-20b" in names  # the map rounds its cached rate
    assert "mistral/devstral-latest" not in names
    assert "2026-10-01" < found.stamp.read_on <= "2026-11-21"
    agreed = [row for row in stored if row.name in names]
    assert all(named.terms != next(d.terms for d in found.drafts if d.name == named.name)
               for named in agreed)  # fmt: skip


def test_without_the_package_the_line_that_installs_it_is_told(monkeypatch, stored):
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    with pytest.raises(PriceError, match=r"deploy/prices/requirements\.lock"):
        read("genai-prices", stored=stored)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "deal.txt",
            "",
            "name `litellm`, `genai-prices`, or a file that ends in .csv, .yaml or .json",
        ),
        ("deal.csv", None, "No such file or directory"),
        ("deal.csv", "x", "column `name` is missing"),
        (
            "deal.yaml",
            "aliases: {a: b/c}\n" + YAML,
            "are not imported: put them into a file that `prices` of the configuration",
        ),
        ("ours.yaml", YAML, "the price book `ours.yaml` exists already"),
    ],
)
def test_what_is_no_source(tmp_path: Path, name, text, words):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(PriceError) as caught:
        read(path, configured=["/etc/ours.yaml"])
    assert words in str(caught.value)
