import json

import pytest

from gateway.config.checks.roles import check_roles, kv_bytes_per_token, unknown_kv_sizes
from gateway.config.schema import Settings

ENDPOINTS = {"prefill": {"endpoints": ["http://10.0.0.5:8000/v1"]},
             "decode": {"endpoints": ["http://10.0.0.6:8000/v1"]}}  # fmt: skip


def settings(roles, **engine):
    engine = {"kind": "simulated", "model": "rtx4090-llama-3.1-8b", **engine}
    pool = {"engine": engine, "gpu": {"type": "CPU"}, "roles": roles}
    return Settings.model_validate({"pools": {"chat": pool}})


def faults(roles, **engine) -> dict[str, str]:
    return {fault.path: fault.message for fault in check_roles(settings(roles, **engine))}


@pytest.mark.parametrize(
    "roles",
    [{"prefill": 1, "decode": 2}, ENDPOINTS, {"prefill": 1, "decode": ENDPOINTS["decode"]}],
)
def test_both_sides_are_enough(roles) -> None:
    assert faults(roles) == {}
    assert faults(roles, replicas=1) == {}


WRONG = [
    ({"prefill": 1}, {}, "pools.chat.roles.decode", "at least one engine"),
    ({"decode": 1}, {}, "pools.chat.roles.prefill", "at least one engine"),
    ({}, {}, "pools.chat.roles.prefill", "at least one engine"),
    (ENDPOINTS, {"kind": "simulated", "kinds": ["embedding"]}, "pools.chat.roles", "decoded"),
    (ENDPOINTS, {"profile": "a.json"}, "pools.chat.engine.profile", "leave it out"),
    (ENDPOINTS, {"flags": ["--kv-transfer-config={}"]}, "pools.chat.engine.flags", "leave it out"),
    (ENDPOINTS, {"flags": ["--kv_transfer_config", "{}"]}, "pools.chat.engine.flags", "leave it"),
    (ENDPOINTS, {"flags": ["--max-num-batched-tokens", "512"]}, "pools.chat.engine.flags",
     "prefill_budget_tokens"),
    ({**ENDPOINTS, "whole_budget_tokens": [512]}, {"replicas": 2},
     "pools.chat.roles.whole_budget_tokens", "1 sizes for 2"),
    ({**ENDPOINTS, "side_host": "8.8.8.8"}, {}, "pools.chat.roles.side_host", "inner network"),
    ({**ENDPOINTS, "side_host": "0.0.0.0"}, {}, "pools.chat.roles.side_host", "unencrypted"),
    ({**ENDPOINTS, "side_host": "gpu.example.com"}, {}, "pools.chat.roles.side_host", "digits"),
    ({**ENDPOINTS, "decode": {"endpoints": ["https://8.8.8.8/v1"]}}, {},
     "pools.chat.roles.decode.endpoints[0]", "inner address"),
    ({**ENDPOINTS, "decode": {"endpoints": ["nonsense"]}}, {},
     "pools.chat.roles.decode.endpoints[0]", "http://10.0.0.5"),
]  # fmt: skip


@pytest.mark.parametrize(("roles", "engine", "place", "words"), WRONG)
def test_what_cannot_work_names_the_field_and_the_fix(roles, engine, place, words) -> None:
    told = faults(roles, **engine)
    assert words in told[place]


def test_engines_that_hand_nothing_on_have_no_roles(monkeypatch) -> None:
    told = faults(ENDPOINTS, kind="vllm")
    assert told == {}
    monkeypatch.setattr("gateway.config.checks.roles.ENGINE_KINDS", _unable())
    assert "leave out `roles`" in faults(ENDPOINTS)["pools.chat.engine.kind"]


def _unable():
    from dataclasses import replace  # noqa: PLC0415  (for this test alone)

    from backends.engines import ENGINE_KINDS  # noqa: PLC0415  (as above)

    return {name: replace(kind, moves_kv=False) for name, kind in ENGINE_KINDS.items()}


def test_the_size_of_kv_is_stated_or_worked_out(tmp_path) -> None:
    pool = settings(ENDPOINTS).pools["chat"]
    assert kv_bytes_per_token(pool) == 131_072
    shape = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "head_dim": 16,
             "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
             "intermediate_size": 128, "torch_dtype": "bfloat16"}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(shape))
    known = settings(ENDPOINTS, kind="vllm", model=str(tmp_path))
    assert kv_bytes_per_token(known.pools["chat"]) == 2 * 2 * 2 * 16 * 2
    assert list(unknown_kv_sizes(known)) == []
    unknown = settings(ENDPOINTS, kind="vllm", model=str(tmp_path / "nothing"))
    ((place, words),) = unknown_kv_sizes(unknown)
    assert place == ("pools", "chat", "roles", "kv_bytes_per_token")
    assert "is required, in bytes" in words
    stated = settings({**ENDPOINTS, "kv_bytes_per_token": 4096}, kind="vllm", model="nothing")
    assert kv_bytes_per_token(stated.pools["chat"]) == 4096
