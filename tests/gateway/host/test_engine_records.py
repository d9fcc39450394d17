"""Rows of an engine: its own page wins over the configuration, and unknown stays unknown."""

from types import SimpleNamespace

from backends.metrics import VLLM
from gateway.host.engine_records import capacity_row, catalog_row

SEAT = SimpleNamespace(
    pool="chat", name="pool:chat/0", served_name="llama", tuned=("--a",), simulated=False
)
POOL = SimpleNamespace(
    engine=SimpleNamespace(kind="vllm", model=None, flags=["--b"]), gpu=SimpleNamespace(type="H100")
)


def watch(sample: object) -> SimpleNamespace:
    limits = SimpleNamespace(context_tokens=0, max_num_seqs=8, prefill_budget_tokens=512)
    return SimpleNamespace(sample=sample, limits=limits)


def test_the_page_names_the_kind() -> None:
    for dialect, kind in ((VLLM, "vllm"), ("sglang", "sglang")):
        sample = SimpleNamespace(dialect=dialect, kv_block_tokens=16, kv_capacity_tokens=4096)
        row = catalog_row(1, SEAT, POOL, watch(sample), "0.32.0")
        assert (row["kind"], row["kv_block_tokens"], row["model"]) == (kind, 16, "llama")
        assert row["flags"] == ["--a", "--b"]
        assert capacity_row(1, SEAT, watch(sample))["kv_capacity_tokens"] == 4096


def test_what_nobody_said_is_unknown() -> None:
    row = catalog_row(1, SEAT, POOL, watch(None), None)
    assert (row["kind"], row["version"], row["context_tokens"]) == ("vllm", None, None)
    assert capacity_row(1, SEAT, watch(None))["kv_capacity_tokens"] is None
