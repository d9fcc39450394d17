"""A trace's kernels: on a GPU by their time, on a processor by their own time."""

import gzip
import json
import os
from pathlib import Path

import pytest

from backends.engine.kernels import ProfilerTraceError, read, summary, traces


def event(name: str, cat: str, ts: float, dur: float, tid: int = 1, **more) -> dict:
    return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur, **more}


def test_on_a_gpu_kernels_and_copies_count_and_what_called_them_does_not():
    found = summary(
        [
            event("aten::mm", "cpu_op", 0, 900),
            event("cudaLaunchKernel", "cuda_runtime", 1, 5),
            event("gemm", "kernel", 100, 60),
            event("gemm", "kernel", 200, 20),
            event("Memcpy DtoH", "gpu_memcpy", 300, 20),
            event("step", "gpu_user_annotation", 100, 500),
            {"ph": "M", "name": "process_name"},
        ]
    )
    assert (found.device, found.total_us, found.span_us) == ("gpu", 100.0, 220.0)
    assert [
        (kernel.name, kernel.calls, kernel.total_us, kernel.share) for kernel in found.kernels
    ] == [
        ("gemm", 2, 80.0, 0.8),
        ("Memcpy DtoH", 1, 20.0, 0.2),
    ]


def test_on_a_processor_an_operation_has_its_own_time():
    found = summary(
        [
            event("linear", "cpu_op", 0, 100),
            event("addmm", "cpu_op", 10, 80),
            event("copy", "cpu_op", 20, 30),
            event("linear", "cpu_op", 100, 50),  # begins where the first one ends
            event("copy", "cpu_op", 10, 40, tid=2),  # beside them, on another thread
            event("frame", "python_function", 0, 1000),
        ]
    )
    own = {kernel.name: (kernel.calls, kernel.total_us) for kernel in found.kernels}
    assert found.device == "cpu"
    assert own == {"linear": (2, 70.0), "addmm": (1, 50.0), "copy": (2, 70.0)}
    assert found.total_us == 190.0 == 150.0 + 40.0  # what both threads were busy


def test_own_times_add_up_to_what_was_busy_however_deep():
    deep = [event(f"op{n}", "cpu_op", n, 100 - 2 * n) for n in range(50)]
    assert summary(deep).total_us == pytest.approx(100.0)


def test_a_trace_is_read_plain_and_packed(tmp_path: Path):
    text = json.dumps({"traceEvents": [event("gemm", "kernel", 0, 3)]})
    plain, packed = tmp_path / "a.pt.trace.json", tmp_path / "b.pt.trace.json.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    assert read(plain) == read(packed)
    assert read(plain).kernels[0].name == "gemm"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "is not a trace"),
        (b"[]", "is not a trace"),
        (b'{"traceEvents": []}', "neither kernels nor operations"),
        (b'{"traceEvents": [{"ph": "X", "cat": "python_function", "dur": 1, "ts": 1}]}', "neither"),
    ],
)
def test_what_is_no_trace_is_said(tmp_path: Path, content: bytes, said: str):
    path = tmp_path / "a.pt.trace.json"
    path.write_bytes(content)
    with pytest.raises(ProfilerTraceError, match=said):
        read(path)
    packed = tmp_path / "a.pt.trace.json.gz"
    packed.write_bytes(b"not packed")
    with pytest.raises(ProfilerTraceError, match="is not a trace"):
        read(packed)


def test_only_new_traces_are_taken_the_largest_first(tmp_path: Path):
    for name, size, at_s in (("old", 9, 5), ("small", 1, 20), ("large", 5, 30)):
        path = tmp_path / name / f"{name}.pt.trace.json.gz"
        path.parent.mkdir()
        path.write_bytes(b"x" * size)
        os.utime(path, (at_s, at_s))
    (tmp_path / "other.json").write_text("{}")
    assert [path.parent.name for path in traces(tmp_path, 10.0)] == ["large", "small"]
