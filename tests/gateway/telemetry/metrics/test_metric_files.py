"""Files of metrics: allocated ahead, and read by the library as its own."""

import subprocess
import sys

from gateway.telemetry.metrics.metric_files import KINDS, allocate_metric_files

PROGRAM = """
import sys
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector
values.ValueClass = values.MultiProcessValue(lambda: 3)
own = CollectorRegistry()
Counter("answers", "x", ["team"], registry=own).labels("a").inc(2)
Histogram("seconds", "x", registry=own).observe(1)
Gauge("open", "x", registry=own, multiprocess_mode="livesum").set(4)
summed = CollectorRegistry()
MultiProcessCollector(summed, path=sys.argv[1])
print(generate_latest(summed).decode())
"""


def test_every_byte_has_a_block_and_the_library_takes_the_files(tmp_path) -> None:
    """Red before: on a full disk a label's first value ended the worker by SIGBUS."""
    for _ in range(2):  # the next life of the worker finds them
        allocate_metric_files(tmp_path, 3)
    files = {path.name: path.stat() for path in tmp_path.iterdir()}
    assert set(files) == {f"{kind}_3.db" for kind in KINDS}
    assert all(file.st_blocks * 512 >= file.st_size > 0 for file in files.values())
    environ = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True,
        check=True, env=environ,
    )  # fmt: skip
    assert 'answers_total{team="a"} 2.0' in told.stdout
    assert "open 4.0" in told.stdout
    assert {path.name for path in tmp_path.iterdir()} == set(files)
