"""Imported LiteLLM configurations, served: who is asked, for how long, and at what price."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from stage_upstream import StageUpstream

from gateway.cli.configuration import _csv
from gateway.config.litellm_import import ImportedConfig, carry_over
from gateway.request.retry_budget import RESERVE
from gateway.table_layout import ApiStatsCell
from ledger.journals.records import TokenCounts
from ledger.prices.book import cost_pusd
from ledger.prices.drafts import DraftChange
from ledger.prices.negotiated import parse_price_csv

IMPORTS = Path(__file__).parent / "imports"
SCALE = 0.1  # of the seconds in the files
OPUS, HAIKU = "claude-opus-4-5", "claude-haiku-4-5"
BIG, SMALL, NEW = "gpt-4.1", "gpt-4o-mini", "gpt-5.4"


def imported(name: str) -> ImportedConfig:
    """One of the files; the times of `timeouts.yaml` made shorter."""
    given = yaml.safe_load((IMPORTS / f"{name}.yaml").read_text())
    settings = given.get("litellm_settings", {})
    for section in (settings, *(entry["litellm_params"] for entry in given["model_list"])):
        for key in ("request_timeout", "timeout", "stream_timeout"):
            if key in section:
                section[key] *= SCALE
    return carry_over(
        given, gpu={"type": "H200", "usd_per_hour": 3.0}, provider_of=lambda _: None,
        sold_as=lambda _: "openai/gpt-4o",
    )  # fmt: skip


@pytest.fixture(scope="module")
def upstream() -> Iterator[StageUpstream]:
    with StageUpstream() as found:
        yield found


@pytest.fixture(scope="module")
def served(running, tmp_path_factory, upstream):
    """All three files by one gateway, each provider at the scripted upstream."""

    def adjust(document: dict[str, Any], ports: dict[str, int]) -> None:
        documents = [imported(name).document for name in ("fallbacks", "timeouts", "prices")]
        document["models"] = {}
        for made in documents:
            document["models"] |= {
                name: model for name, model in made["models"].items() if model != "passthrough"
            }
            document["pools"] |= made.get("pools", {})
            document["providers"] |= {
                name: {**provider, "base_url": upstream.url(name), "api_key_env": "A_KEY"}
                for name, provider in made["providers"].items()
            }
            document["server"]["timeouts"] |= made.get("server", {}).get("timeouts", {})
        engine = document["pools"]["Qwen3-32B"]["engine"]
        engine["endpoints"] = [f"http://127.0.0.1:{ports['engine']}/v1"]
        document["providers"]["like-own"] = {
            "base_url": upstream.url("own"), "extra_body": engine["extra_body"],
            "template_arguments": True,
        }  # fmt: skip
        document["models"]["like-own"] = {"targets": ["like-own/m"]}
        document["policies"] = documents[0]["policies"]

    with running(
        tmp_path_factory.mktemp("host"), adjust=adjust, environ={"A_KEY": "sk-none"}
    ) as stack:
        yield stack


@pytest.fixture
def ask(served, upstream):
    def made(model: str, says: dict[str, str | float] | None = None, **members: Any):
        upstream.says, upstream.asked, upstream.bodies = dict(says or {}), [], []
        dispatcher = served.app.hot._dispatcher
        dispatcher.retries._balance = RESERVE
        for row in range(len(served.runtime.apis)):
            base = served.board.api_stats_row(0, row)
            for cell in range(base, base + len(ApiStatsCell)):
                served.board.cells[cell] = 0.0
        answer = served.chat(model, max_tokens=5, **members)
        return answer, [name for _, name in upstream.asked]

    return made


@pytest.mark.parametrize(
    ("model", "says", "asked"),
    [
        ("assistant", {}, [OPUS]),
        ("assistant", {OPUS: "500"}, [OPUS, BIG]),
        ("assistant", {OPUS: "500", BIG: "500"}, [OPUS, BIG, SMALL]),
        ("assistant", {OPUS: "429"}, [OPUS, BIG]),
        ("short", {}, [BIG]),
        ("short", {BIG: "context"}, [BIG, HAIKU]),
        ("strict", {}, [NEW]),
        ("strict", {NEW: "filter"}, [NEW, SMALL]),
        ("reasoned", {}, [NEW]),
        ("tiered", {}, [BIG]),
    ],
)
def test_the_imported_file_asks_in_the_order_of_the_original(ask, model, says, asked) -> None:
    answer, found = ask(model, says)
    assert (found, answer.status_code) == (asked, 200), answer.text
    assert answer.json()["choices"][0]["message"]["content"] == "hello"


def test_what_no_fallback_is_for_is_the_clients(ask) -> None:
    """The control: each cause at a model whose fallbacks are for another one."""
    for model, says, status in (
        ("assistant", {OPUS: "400"}, 400), ("short", {BIG: "500"}, 502),
        ("strict", {NEW: "context"}, 400), ("short", {BIG: "filter"}, 400),
    ):  # fmt: skip
        answer, found = ask(model, says)
        assert (len(found), answer.status_code) == (1, status), (model, answer.text)


@pytest.mark.parametrize(("model", "status"), [("patient", 200), ("writer", 504), ("hasty", 504)])
def test_a_slow_answer_ends_by_its_models_own_timeout(ask, model, status) -> None:
    """9 s beside timeouts of 120, 5 and 2, all a tenth."""
    answer, _ = ask(model, {"openai": 9 * SCALE})
    assert answer.status_code == status


def test_a_stream_flows_on_beyond_the_general_timeout(ask, upstream) -> None:
    upstream.flows_s = 9 * SCALE
    try:
        answer, _ = ask("writer", stream=True)
    finally:
        upstream.flows_s = 0.0
    assert answer.text.rstrip().endswith("data: [DONE]")


def test_what_an_engine_was_sent_with_each_request_is_sent(ask, upstream, served) -> None:
    model = served.settings.models["own"]
    (engine,) = served.planner._routes._fleet.targets("own", model)
    assert bytes(engine.extra["chat_template_kwargs"]) == b'{"enable_thinking":false}'
    for said in (False, True):
        stated = {"chat_template_kwargs": {"enable_thinking": True}} if said else {}
        answer, found = ask("like-own", **stated)
        assert (found, answer.status_code) == (["m"], 200), answer.text
        assert upstream.bodies[0]["chat_template_kwargs"] == {"enable_thinking": said}


@pytest.mark.parametrize(
    ("tokens", "usd"), [(1_000, "0.00118"), (200_000, "0.22008"), (250_000, "0.55012")]
)
def test_a_tier_of_a_price_is_charged(tokens, usd) -> None:
    csv = _csv(imported("prices").prices).encode()
    (draft,) = parse_price_csv(csv, book="prices.csv")
    used = TokenCounts(input=tokens, output=10)
    assert cost_pusd(used, DraftChange(draft, 0).price(0)) == round(float(usd) * 10**12)


def test_no_file_loses_anything_that_needs_to_be_accepted() -> None:
    for name in ("fallbacks", "timeouts", "prices"):
        assert [note for note in imported(name).notes if note.rank() == "error"] == []
