"""`breakeven prices`: what counts, what to doubt, and imports that somebody approved."""

import json
import os
import pty
import time
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import delete
from typer.testing import CliRunner

from deploy import warmstart
from gateway.cli.app import app
from gateway.config.settings import load
from gateway.control.pricing.configured import names_in_use
from gateway.host.prepare import prepare
from ledger.database import make_engine, sqlite_url
from ledger.orm.books import PriceVersionRow
from ledger.prices.drafts import PriceDraft
from ledger.prices.rates import PriceTerms, rates_from
from ledger.prices.stored import import_drafts, load_price_book, stored_prices

NAME = "openai/gpt-4o-mini"
SAFEGUARD = "groq/openai/gpt-oss-safeguard-20b"
HAIKU = "anthropic/claude-haiku-4-5"
KEPT = (NAME, SAFEGUARD, HAIKU, "openai/gpt-4o", "openai/gpt-5-mini", "openai/gpt-4o-mini#eu")
CONFIG = """
state_dir: STATE
providers:
  openai: {}
  mirror: {base_url: "http://127.0.0.1:1/v1", prices_as: openai/gpt-4o}
models:
  chat: {targets: [openai/gpt-4o-mini, mirror/m], compare_with: [openai/gpt-5-mini]}
  openai/*: passthrough
"""
KINDS = ("input", "cached", "output")
HEAD = f"name,{','.join(f'{named}_usd_per_million' for named in KINDS)},until,source,source_date"
DEAL = f"{HEAD}\n{NAME},0.12,0.06,0.48,2036-10-31,contract 17,2026-11-01\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory as a start leaves it."""
    folder = tmp_path_factory.mktemp("prices")
    config = folder / "breakeven.yaml"
    config.write_text(CONFIG.replace("STATE", str(folder / "state")))
    prepare(load(config), config)
    engine = make_engine(sqlite_url(folder / "state" / "ledger.db"))
    with engine.begin() as connection:  # a small book: every command reads it whole
        connection.execute(delete(PriceVersionRow).where(PriceVersionRow.name.not_in(KEPT)))
    engine.dispose()
    return folder


@pytest.fixture
def host(made: Path, tmp_path: Path):
    """`host(words...)` runs the command on a copy; `host.ledger` is its database."""
    state = tmp_path / "state"
    state.mkdir()
    (state / "ledger.db").write_bytes((made / "state" / "ledger.db").read_bytes())
    config = tmp_path / "breakeven.yaml"
    config.write_text(CONFIG.replace("STATE", str(state)))
    engine = make_engine(sqlite_url(state / "ledger.db"))

    def run(*words: str):
        return CliRunner().invoke(app, ["prices", *words, "--config", str(config)])

    run.ledger, run.config, run.folder = engine, config, tmp_path
    yield run
    engine.dispose()


def deal(host, text: str = DEAL) -> str:
    path = host.folder / "deal.csv"
    path.write_text(text)
    return str(path)


def asked(host, *words: str):
    answer = host(*words, "--json")
    assert answer.stdout, answer.output
    return json.loads(answer.stdout)


def test_names_in_use(host):
    assert names_in_use(load(host.config)) == ["openai/gpt-4o", NAME, "openai/gpt-5-mini"]


def test_show_tells_version_source_dates_and_every_kind(host):
    found = asked(host, "show", NAME)
    assert (found["name"], found["book"], found["source_date"]) == (NAME, "litellm", "2026-10-21")
    assert found["from"] is None
    by_kind = {(price["tier"], price["kind"]): price["price"] for price in found["prices"]}
    assert by_kind["standard", "cached"] == "0.075"
    assert by_kind["batch", "output"] == "0.3"
    (version,) = found["versions"]
    assert (version["version"], version["origin"]) == (found["version"], "start")
    text = host("show", NAME).stdout
    assert "source: https://" in text
    assert "priority" in text


def test_a_target_is_shown_at_the_price_that_its_requests_cost(host):
    """Red before: `no price in force` for a target whose section borrows another's prices."""
    flex = "  openai-flex: {base_url: 'http://127.0.0.1:1/v1', prices_as: openai, tier: flex}\n"
    path = host.config
    path.write_text(path.read_text().replace("models:\n", f"{flex}models:\n"))
    for target, name in (("mirror/any", "openai/gpt-4o"), ("openai-flex/gpt-5-mini",
                                                           "openai/gpt-5-mini")):  # fmt: skip
        answer = host("show", target)
        assert answer.exit_code == 0, answer.output
        assert f"{target} (priced as {name}): version" in answer.stdout
        assert "missing" not in answer.stdout
        assert ("service tier of its requests: flex" in answer.stdout) == ("flex" in target)
        found = json.loads(host("show", target, "--json").stdout)
        assert (found["asked"], found["name"]) == (target, name)
        assert found["tier"] == ("flex" if "flex" in target else None)
        assert found["versions"]
    assert "openai-flex/none has no price in force" in host("show", "openai-flex/none").stdout
    assert "none/gpt-5-mini has no price in force" in host("show", "none/gpt-5-mini").stdout


def test_show_lists_what_is_used_or_like_a_pattern_or_all(host):
    assert [request["asked"] for request in asked(host, "show")] == names_in_use(load(host.config))
    some = asked(host, "show", "anthropic/*")
    assert [item["asked"] for item in some] == [HAIKU]
    assert {HAIKU, SAFEGUARD, NAME} <= {
        request["asked"] for request in asked(host, "show", "--all")
    }
    other = asked(host, "show", "openai/gpt-4o-mini-2099-01-01")
    assert (other["asked"], other["name"]) == ("openai/gpt-4o-mini-2099-01-01", NAME)
    assert asked(host, "show", "acme/none")["name"] is None


def test_check_ends_with_0_for_nothing_and_1_for_a_doubt(host, monkeypatch):
    day = time.strptime("2026-11-21", "%Y-%m-%d")
    monkeypatch.setattr("gateway.clock.time.time_ns", lambda: int(time.mktime(day)) * 10**9)
    answer = host("check")
    assert (answer.exit_code, answer.stdout.strip()) == (0, "3 prices checked: no findings.")
    stale = DEAL.replace("2026-11-01", "2026-01-01").replace("contract 17", "")
    assert host("import", "--from", deal(host, stale), "--yes").exit_code == 0
    document = asked(host, "check")
    assert [(flag["name"], flag["flag"]) for flag in document["flags"]] == [
        (NAME, "no_source"), (NAME, "stale"),
    ]  # fmt: skip
    assert host("check").exit_code == 1


def test_check_tells_what_the_map_says_otherwise_and_what_is_missing(host):
    stored = next(
        stored_price for stored_price in stored_prices(host.ledger) if stored_price.name == NAME
    )
    old = PriceDraft(NAME, "litellm", PriceTerms(rates_from({"input": 99, "output": 99})),
                     source=stored.source, source_date="2026-10-21")  # fmt: skip
    import_drafts(host.ledger, [old], at_us=time.time_ns() // 1000)
    text = host.config.read_text()
    host.config.write_text(text.replace("compare_with: [", "compare_with: [openai/none, "))
    flags = {(flag["name"], flag["flag"]) for flag in asked(host, "check")["flags"]}
    assert {(NAME, "pending"), ("openai/none", "missing")} <= flags
    (entry,) = asked(host, "diff", "--from", "litellm", "--only", NAME)["entries"]
    assert (entry["name"], entry["status"]) == (NAME, "changed")


def test_diff_stores_nothing(host):
    before = stored_prices(host.ledger)
    document = asked(host, "diff", "--from", deal(host))
    (entry,) = document["entries"]
    assert (entry["status"], entry["until"]) == ("changed", "2036-11-01T00:00:00+00:00")
    assert [(price["old"], price["new"], price["percent"]) for price in entry["prices"][:3]] == [
        ("0.15", "0.12", -20.0), ("0.075", "0.06", -20.0), ("0.6", "0.48", -20.0),
    ]  # fmt: skip
    assert "deal.csv: 1 changed, 0 unchanged." in host("diff", "--from", deal(host)).stdout
    assert stored_prices(host.ledger) == before


def test_an_import_needs_a_yes(host):
    before = stored_prices(host.ledger)
    answer = host("import", "--from", deal(host))
    assert answer.exit_code == 1
    assert (
        "There is no terminal for a confirmation: review with `breakeven prices "
        "diff`, then use --yes"
    ) in answer.stderr
    assert stored_prices(host.ledger) == before


def test_an_import_adds_versions_and_says_who(host):
    before = stored_prices(host.ledger)
    document = asked(host, "import", "--from", deal(host), "--yes", "--by", "ann")
    assert (document["stored"], document["by"]) == (1, "ann")
    after = stored_prices(host.ledger)
    assert after[:-1] == before
    found = asked(host, "show", NAME)
    assert (found["version"], found["book"], found["source"]) == (
        after[-1].version, "deal.csv", "contract 17",
    )  # fmt: skip
    assert [version["by"] for version in found["versions"]][-1] == "ann"
    assert asked(host, "import", "--from", deal(host), "--yes")["stored"] == 0


def test_a_name_that_the_file_drops_ends_and_only_limits_what_is_touched(host):
    both = deal(host, DEAL + "acme/own,1,,2,,x,2026-11-01\n")
    assert asked(host, "import", "--from", both, "--yes", "--only", "acme/*")["stored"] == 1
    assert asked(host, "import", "--from", both, "--yes")["stored"] == 1
    document = asked(host, "import", "--from", deal(host), "--yes")
    assert [(entry["name"], entry["status"]) for entry in document["entries"]] == [
        ("acme/own", "removed")
    ]
    assert load_price_book(host.ledger).find("acme/own", time.time_ns() // 1000) is None


def test_a_start_keeps_what_was_imported(host):
    asked(host, "import", "--from", deal(host), "--yes")
    version = asked(host, "show", NAME)["version"]
    prepare(load(host.config), host.config)
    assert asked(host, "show", NAME)["version"] == version


def test_an_imported_price_is_known_to_the_check_of_a_configuration(host):
    host.config.write_text(host.config.read_text().replace("[openai/gpt-5-mini]", "[acme/own]"))
    whole = ["check", "--config", str(host.config)]
    assert "no price for `acme/own`" in CliRunner().invoke(app, whole).output
    own = deal(host, DEAL + "acme/own,1,,2,,x,2026-11-01\n")
    assert host("import", "--from", own, "--yes").exit_code == 0
    assert "acme/own" not in CliRunner().invoke(app, whole).output


def test_genai_prices_for_some_names(host):
    name = SAFEGUARD
    document = asked(host, "import", "--from", "genai-prices", "--only", name, "--yes")
    (entry,) = document["entries"]
    assert [(price["kind"], price["old"], price["new"]) for price in entry["prices"]] == [
        ("cached", "0.037", "0.0375")
    ]
    assert asked(host, "show", name)["book"] == "genai-prices"
    assert document["stored"] == 1


def test_faults_of_a_file_are_lines_and_nothing_is_stored(host):
    before = stored_prices(host.ledger)
    answer = host("import", "--from", deal(host, f"{HEAD}\n{NAME},x,,y,,,\n"), "--yes")
    assert answer.exit_code == 1
    assert "deal.csv: line 2, column `input_usd_per_million`: `x` is not a number" in answer.stderr
    assert "deal.csv: line 2, column `output_usd_per_million`: `y`" in answer.stderr
    assert stored_prices(host.ledger) == before


def test_a_price_in_the_wrong_unit_is_pointed_out_stored_when_approved_and_then_doubted(host):
    wrong = deal(host, DEAL.replace("0.12,0.06,0.48", "0.00012,0.00006,0.00048"))
    words = "a price per 1K tokens where one per 1M tokens is meant?"
    assert words in host("diff", "--from", wrong).stdout
    refused = host("import", "--from", wrong)
    assert (refused.exit_code, "1 implausible" in refused.stderr) == (1, True)
    done = host("import", "--from", wrong, "--yes", "--json")
    document = json.loads(done.stdout)
    assert (document["stored"], document["implausible"][0]["name"]) == (1, NAME)
    assert words in done.stderr
    flags = {(flag["name"], flag["flag"]) for flag in asked(host, "check")["flags"]}
    assert (NAME, "implausible") in flags
    whole = CliRunner().invoke(app, ["check", "--config", str(host.config)])
    assert "(deal.csv) looks wrong: input, cached, output: 1," in " ".join(whole.output.split())
    assert asked(host, "import", "--from", deal(host), "--yes")["implausible"] == []
    assert "implausible" not in str(asked(host, "check"))


@pytest.mark.parametrize(("word", "stored"), [("n", 0), ("y", 1)])
def test_at_a_terminal_a_person_is_asked(host, word, stored):
    before = len(stored_prices(host.ledger))
    ours, theirs = pty.openpty()
    words = ["prices", "import", "--from", deal(host), "--config", str(host.config)]
    done = warmstart.programs().start(words, output=theirs)
    os.close(theirs)
    said = b""
    while b"Store 1 new versions?" not in said:
        said += os.read(ours, 4096)
    assert b"0.12" in said
    os.write(ours, f"{word}\n".encode())
    assert done.wait(30) == (0 if stored else 1)
    os.close(ours)
    assert len(stored_prices(host.ledger)) - before == stored


def test_charges_that_a_price_does_not_say_are_named(host):
    """Most lists have a fee of searches, which only hosted tools make: `check` is silent of it."""
    terms = PriceTerms(
        rates_from({"input": 10**6, "output": 4 * 10**6}),
        unread=("page_cost", "search_context_cost_per_query"),
    )
    stated = {"source": "https://x", "source_date": "2026-11-01"}
    drafts = [
        PriceDraft("acme/reader", "list", terms, **stated),
        PriceDraft("acme/plain", "list", msgspec.structs.replace(terms, unread=terms.unread[1:]),
                   **stated),
    ]  # fmt: skip
    import_drafts(host.ledger, drafts, at_us=1)
    found = asked(host, "show", "acme/reader")
    assert found["unread"] == [
        {"term": "page_cost", "charged_for": "any"},
        {"term": "search_context_cost_per_query", "charged_for": "hosted_tools"},
    ]
    words = (
        "partly_known: not in its terms: page_cost, search_context_cost_per_query (hosted tools)"
    )
    assert words in " ".join(host("show", "acme/reader").stdout.split())
    listed = asked(host, "show", "acme/*")
    assert [flag["flag"] for entry in listed for flag in entry["flags"]].count("partly_known") == 2
    flags = asked(host, "check", "--all")["flags"]
    partly = [flag["name"] for flag in flags if flag["flag"] == "partly_known"]
    assert (partly.count("acme/reader"), partly.count("acme/plain")) == (1, 0)
    file = host.config.parent / "ours.yaml"
    price = "usd_per_million: {input: 1, output: 4}, complete: true"
    file.write_text(f"source: offer\nsource_date: 2026-11-01\nprices: {{acme/reader: {{{price}}}}}")
    assert host("import", "--from", str(file), "--yes").exit_code == 0
    found = asked(host, "show", "acme/reader")
    assert (found["unread"], found["book"]) == ([], "ours.yaml")
    assert "partly_known" not in [flag["flag"] for flag in found["flags"]]


def test_thoughts_beside_the_limit_are_told(host):
    file = host.config.parent / "thoughts.yaml"
    plain = "usd_per_million: {input: 1, output: 4}, reasoning: outside"
    prices = f"{{acme/open: {{{plain}}}, acme/thinks: {{{plain}, max_reasoning: 65536}}}}"
    file.write_text(f"source: offer\nsource_date: 2026-11-01\nprices: {prices}")
    assert host("import", "--from", str(file), "--yes").exit_code == 0
    found = asked(host, "show", "acme/thinks")
    assert (found["reasoning"], found["max_reasoning"]) == ("outside", 65_536)
    words = " ".join(host("show", "acme/thinks").stdout.split())
    assert "reasoning: outside `max_tokens`, at most 65536 tokens a choice" in words
    assert asked(host, "show", "acme/open")["max_reasoning"] is None
    words = " ".join(host("show", "acme/open").stdout.split())
    assert "reasoning: outside `max_tokens`, at most as many tokens as its longest answer" in words


def test_how_pictures_are_counted_is_told(host):
    file = host.config.parent / "pictures.yaml"
    plain = "usd_per_million: {input: 1, output: 4}"
    prices = f"{{acme/sees: {{{plain}, image_tokens: qwen-28}}, acme/blind: {{{plain}}}}}"
    file.write_text(f"source: offer\nsource_date: 2026-11-01\nprices: {prices}")
    assert host("import", "--from", str(file), "--yes").exit_code == 0
    assert asked(host, "show", "acme/sees")["image_tokens"] == "qwen-28"
    assert (
        "image tokens of a prompt: counted by the rule `qwen-28`"
        in host("show", "acme/sees").stdout
    )
    assert asked(host, "show", "acme/blind")["image_tokens"] is None
