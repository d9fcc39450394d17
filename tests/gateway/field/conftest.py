"""One running gateway for all money cases, each with a provider, a team and prices of its own."""

import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "request"))

from field_cases import MoneyCase, load_cases
from field_client import CaseRun, play_case
from field_upstream import ScriptedUpstream

from backends import litellm

MONEY = Path(__file__).parent / "money"
FEATURES = ["tools", "json_schema", "images", "logprobs", "n", "reasoning"]
KINDS = ["chat", "completion", "embedding", "rerank", "transcription"]
LITELLM_KINDS = KINDS[:3]  # what LiteLLM translates


@pytest.fixture(scope="module")
def play(running, tmp_path_factory) -> Iterator[Callable[[MoneyCase], CaseRun]]:
    """Play a case through the gateway and return the answers, the rows and the upstream's log."""
    litellm.load()  # before a request waits for it: on a busy machine for a minute
    cases = load_cases(MONEY)
    state = tmp_path_factory.mktemp("field")
    with (
        pytest.MonkeyPatch.context() as patch,
        ScriptedUpstream() as upstream,
        running(state, **settings(cases, state, upstream)) as stack,
    ):
        # A sign of life is a 200, after which no refusal of a slow machine has its own status.
        patch.setattr("gateway.request.client_response.KEEP_ALIVE_S", 300.0)
        yield lambda case: play_case(stack, upstream, case)


def settings(cases: list[MoneyCase], folder: Path, upstream: ScriptedUpstream) -> dict:
    (folder / "api.key").write_text("none-but-ours")
    (folder / "api.key").chmod(0o600)
    prices = {name: terms for case in cases for name, terms in case.prices.items()}
    listed = {"source": "price of the case", "source_date": date(2026, 11, 1), "prices": prices}
    (folder / "prices.yaml").write_text(yaml.safe_dump(listed))
    return {
        "prices": [str(folder / "prices.yaml")],
        "models": {f"{case.name}/*": "passthrough" for case in cases},
        "providers": {case.name: provider(case, folder, upstream.port) for case in cases},
        "budgets": [
            {"scope": f"team:{case.name}", "usd": case.budget_usd, "period": "day", "hard": True}
            for case in cases
            if case.budget_usd is not None
        ],
    }


def provider(case: MoneyCase, folder: Path, port: int) -> dict:
    """Settings of the case's provider; LiteLLM wants a key and adds the rest of the path itself."""
    address = f"http://127.0.0.1:{port}/{case.name}"
    if case.provider.get("kind") == "litellm":
        kind = {"kinds": LITELLM_KINDS, "api_key_file": str(folder / "api.key")}
        return {"base_url": address, "features": FEATURES, **kind, **case.provider}
    return {"base_url": f"{address}/v1", "features": FEATURES, "kinds": KINDS, **case.provider}
