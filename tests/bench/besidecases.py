"""Configurations of a LiteLLM proxy and requests to it, for `bench_litellm_beside`.

A deployment's name at its provider says how it behaves (`besideupstream`). Fallbacks for long and
refused prompts change what a proxy does with all its models, so each such choice is a scene.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FAILURES = ("e429", "e500", "e503", "e401", "e403", "e404", "e400", "ctx", "policy", "late")
USD_IN, USD_OUT = 1e-6, 3e-6


@dataclass(frozen=True, slots=True)
class BesideCase:
    """Requests for one model, one after the other. `compares`: what must be equal of them."""

    name: str
    model: str
    stream: bool = False
    times: int = 1
    compares: tuple[str, ...] = ("status", "asked", "answered", "cost")


@dataclass(frozen=True, slots=True)
class BesideScene:
    """A proxy's file without addresses and keys, and what is asked of it."""

    name: str
    models: Mapping[str, tuple[dict[str, Any], ...]]
    cases: tuple[BesideCase, ...]
    sections: Mapping[str, Any] = field(default_factory=dict)

    def document(self, api_base: str | None, master_key: str | None = None) -> dict[str, Any]:
        """The proxy's file; `api_base`: where its provider is, else at the public address."""
        where = {} if api_base is None else {"api_base": api_base}
        entries = [
            {
                "model_name": name,
                "litellm_params": {
                    "api_key": "os.environ/OPENAI_API_KEY", **where,
                    "input_cost_per_token": USD_IN, "output_cost_per_token": USD_OUT, **params,
                },
            }
            for name, deployments in self.models.items()
            for params in deployments
        ]  # fmt: skip
        made: dict[str, Any] = {"model_list": entries, **self.sections}
        if master_key is not None:
            general = {**made.get("general_settings", {}), "master_key": master_key}
            made["general_settings"] = general
        return made


def deployed(behaviour: str, label: str, **params: Any) -> dict[str, Any]:
    return {"model": f"openai/{behaviour}--{label}", **params}


def _models(**behaviours: str) -> dict[str, tuple[dict[str, Any], ...]]:
    return {name: (deployed(behaviour, name),) for name, behaviour in behaviours.items()}


def _general() -> BesideScene:
    """Fallbacks of one kind, and everything that needs none."""
    models = _models(plain="ok", flow="flow", cut="cut", backup="ok")
    models |= {f"alone-{kind}": (deployed(kind, "alone", timeout=2),) for kind in FAILURES}
    models |= {f"first-{kind}": (deployed(kind, "first", timeout=2),) for kind in FAILURES}
    models |= _models(
        c1="e500", c2="e500", c3="e500", c4="ok", loop1="e500", loop2="e500", wide="e500",
        own="e500", after="ok", mixed="e500", toolong="ctx",
        d0="e500", d1="e500", d2="e500", d3="e500", d4="e500", d5="e500", d6="ok",
    )  # fmt: skip
    models |= {
        "weighted": (deployed("ok", "three", weight=3), deployed("ok", "one", weight=1)),
        "ordered": (deployed("ok", "second", order=2), deployed("e500", "zero", order=1)),
        "halves": (deployed("e500", "half"), deployed("ok", "half")),
        "quick": (deployed("late", "quick", timeout=1),),
        "firstword": (deployed("late", "firstword", timeout=30, stream_timeout=1),),
        "openai/*": ({"model": "openai/*"},),
        "aliased": (deployed("e500", "aliased"),),
    }
    chains = [{f"d{n}": [f"d{n + 1}"]} for n in range(6)]
    fallbacks = [
        *({f"first-{kind}": ["backup"]} for kind in FAILURES), *chains,
        {"c1": ["c2"]}, {"c2": ["c3"]}, {"c3": ["c4"]}, {"loop1": ["loop2"]}, {"loop2": ["loop1"]},
        {"wide": ["own", "backup"]}, {"own": ["after"]}, {"mixed": ["toolong", "backup"]},
        {"alias-keyed": ["backup"]}, {"first-e500": ["backup"]},
    ]  # fmt: skip
    cases = [
        BesideCase("ordinary", "plain"),
        BesideCase("ordinary stream", "plain", stream=True, compares=("status", "asked", "whole")),
        BesideCase("a stream longer than the timeout", "flow", stream=True,
                   compares=("status", "asked", "whole")),
        BesideCase("a stream that is cut", "cut", stream=True,
                   compares=("status", "asked", "whole")),
        *(BesideCase(f"{kind} without a fallback", f"alone-{kind}") for kind in FAILURES),
        *(BesideCase(f"{kind} with a fallback", f"first-{kind}") for kind in FAILURES),
        BesideCase("a fallback's fallback's fallback", "c1"),
        BesideCase("fallbacks in a ring", "loop1"),
        BesideCase("a fallback's own before the next", "wide"),
        BesideCase("a chain longer than max_fallbacks", "d0"),
        BesideCase("a failure, then a prompt that is too long", "mixed"),
        BesideCase("weights 3 to 1", "weighted", times=80, compares=("status", "shares")),
        BesideCase("order", "ordered"),
        BesideCase("one of two deployments fails", "halves", times=12, compares=("status",)),
        BesideCase("timeout of a deployment", "quick"),
        BesideCase("stream_timeout", "firstword", stream=True, compares=("status", "asked")),
        BesideCase("a model of a pattern", "openai/ok--pattern"),
        BesideCase("an alias", "alias"),
        BesideCase("an alias of a model with fallbacks", "alias-chain"),
        BesideCase("an alias with fallbacks of its own", "alias-keyed"),
        BesideCase("an alias of ordered deployments", "alias-ordered"),
        BesideCase("a name that nobody knows", "nobody", compares=("status",)),
    ]  # fmt: skip
    sections = {
        "router_settings": {
            "num_retries": 0, "fallbacks": fallbacks,
            "model_group_alias": {
                "alias": "plain", "alias-chain": "c1", "alias-keyed": "aliased",
                "alias-ordered": "ordered",
            },
        },
        "litellm_settings": {"request_timeout": 3},
    }  # fmt: skip
    return BesideScene("general", models, tuple(cases), sections)


def _kinds() -> BesideScene:
    """Fallbacks of all three kinds, and default ones."""
    models = _models(
        long="ctx", strict="policy", broken="e500", limited="e429", longer="ok", mild="ok",
        spare="ok", everybody="ok", other="e500", otherlong="ctx", turn="e500", turned="ctx",
        chainlong="ctx", chainlonger="ctx", first400="e400",
    )  # fmt: skip
    sections = {
        "router_settings": {
            "num_retries": 0,
            "fallbacks": [
                {"broken": ["spare"]}, {"limited": ["spare"]}, {"long": ["spare"]},
                {"turn": ["turned"]}, {"first400": ["spare"]},
            ],
            "context_window_fallbacks": [
                {"long": ["longer"]}, {"turned": ["longer"]}, {"chainlong": ["chainlonger"]},
                {"chainlonger": ["longer"]},
            ],
            "content_policy_fallbacks": [{"strict": ["mild"]}],
            "default_fallbacks": ["everybody"],
        },
        "litellm_settings": {"request_timeout": 3},
    }  # fmt: skip
    cases = tuple(
        BesideCase(words, model)
        for words, model in (
            ("too long, with a fallback for that", "long"),
            ("refused, with a fallback for that", "strict"),
            ("500, with all kinds", "broken"), ("429, with all kinds", "limited"),
            ("400, with all kinds", "first400"),
            ("500, with the default fallback", "other"),
            ("too long, with the default fallback alone", "otherlong"),
            ("a failure, then too long", "turn"), ("too long, twice", "chainlong"),
            ("a name that nobody knows, with a default fallback", "nobody"),
        )
    )  # fmt: skip
    return BesideScene("kinds", models, cases, sections)


def _retries() -> BesideScene:
    """What a proxy does by itself: two more tries, and cooldowns."""
    models = _models(failing="e500", busy="e429", spare="ok")
    models |= {"pair": (deployed("e500", "pair"), deployed("ok", "pair"))}
    sections = {"router_settings": {"fallbacks": [{"failing": ["spare"]}, {"busy": ["spare"]}]}}
    cases = (
        BesideCase("500, usual retries", "failing"),
        BesideCase("429, usual retries", "busy"),
        BesideCase("a pair, one of which fails", "pair", times=12, compares=("status",)),
        BesideCase("who fails always, after a while", "failing", times=6, compares=("status",)),
    )
    return BesideScene("retries", models, cases, sections)


SCENES = (_general(), _kinds(), _retries())
