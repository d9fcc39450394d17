"""What-ifs of one host: one at a time, looked at by name, forgotten in the end."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.control import whatif_jobs
from gateway.control.whatif_jobs import (
    KEPT,
    WhatIfBusy,
    WhatIfJobSpec,
    WhatIfProgress,
    WhatIfRequest,
    WhatIfResult,
    WhatIfRunner,
    progress,
    write_result,
)

ORDER = WhatIfJobSpec(WhatIfRequest((("new", "in-force"),), "last-24-hours"), {}, 1)
FIRST = "import os, pathlib, sys; place = pathlib.Path(sys.argv[-1]); given = sys.stdin.readline();"
# Moved to its place whole, as `write_result` does: who looks meanwhile reads nothing half written.
ENDS = (
    FIRST
    + "half = place / 'half'; half.write_text('{\"result\": {\"a\": 1}}');"
    + "half.rename(place / 'told.json')"
)
WAITS = FIRST + "(place / 'pid').write_text(str(os.getpid())); sys.stdin.read()"
FAILS = FIRST + "sys.exit(3)"


@pytest.fixture
def what_ifs(tmp_path) -> Callable[[str], WhatIfRunner]:
    def make(script: str) -> WhatIfRunner:
        return WhatIfRunner(tmp_path, dict(os.environ), (sys.executable, "-c", script))

    return make


def ended(found: WhatIfRunner, job: str | None, patiently) -> dict:
    def look() -> dict | None:
        now = found.job_status(job)
        return now if now["state"] != "running" else None

    return patiently(look)


def begun(found: WhatIfRunner, order: WhatIfJobSpec, by: str) -> str | None:
    try:
        return found.start_job(order, by)
    except WhatIfBusy:
        return None


def test_what_a_process_tells_is_told(what_ifs, patiently) -> None:
    job = what_ifs(ENDS).start_job(ORDER, "ada")
    found = ended(what_ifs(ENDS), job, patiently)
    assert (found["state"], found["result"], found["fault"]) == ("done", {"a": 1}, None)
    assert (found["job"], found["by"], found["since_us"]) == (job, "ada", 1)
    assert found["asked"]["sets"] == (("new", "in-force"),)
    assert what_ifs(ENDS).job_status(None) == found
    assert what_ifs(ENDS).folder.stat().st_mode & 0o077 == 0


def test_one_at_a_time_until_its_process_is_gone(what_ifs, tmp_path, patiently) -> None:
    job = what_ifs(WAITS).start_job(ORDER, "ada")
    other = what_ifs(ENDS)
    with pytest.raises(WhatIfBusy):
        other.start_job(ORDER, "eve")
    pid = patiently(lambda: (other.folder / job / "pid").exists() and
                    (other.folder / job / "pid").read_text())  # fmt: skip
    assert other.job_status(job)["state"] == "running"
    os.kill(int(pid), 9)
    found = ended(other, job, patiently)
    assert (found["state"], found["result"]) == ("failed", None)
    assert patiently(lambda: begun(other, ORDER, "eve"))


def test_one_that_fails_says_so(what_ifs, patiently) -> None:
    found = what_ifs(FAILS)
    job = found.start_job(ORDER, "ada")
    patiently(lambda: "it failed" in str(found.job_status(job)["fault"]))
    assert found.job_status(job)["state"] == "failed"


def test_one_that_takes_too_long_is_ended(what_ifs, monkeypatch, patiently) -> None:
    monkeypatch.setattr(whatif_jobs, "LIMIT_S", 0.2)
    found = what_ifs(WAITS)
    job = found.start_job(ORDER, "ada")
    patiently(lambda: "took longer than 0.2 s" in str(found.job_status(job)["fault"]))
    assert patiently(lambda: begun(what_ifs(ENDS), ORDER, "eve"))


def test_the_process_is_given_the_question_and_no_descriptor_but_the_lock(what_ifs, patiently):
    script = FIRST + (
        "import json; names = sorted(os.readlink(f'/proc/self/fd/{one}')"
        " for one in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{one}'));"
        "(place / 'told.json').write_text(json.dumps({'result': {'names': names,"
        " 'given': json.loads(given)}}))"
    )
    read, _ = pipe = os.pipe()
    os.set_inheritable(read, True)
    try:
        job = what_ifs(script).start_job(ORDER, "ada")
        result = ended(what_ifs(script), job, patiently)["result"]
    finally:
        for item in pipe:
            os.close(item)
    assert result["given"]["question"]["ledger"] == "last-24-hours"
    known = [name for name in result["names"] if not name.endswith(("/lock", "/log"))]
    assert len([name for name in known if name.startswith("pipe:")]) == 1, "its standard input"


def test_the_oldest_is_forgotten(what_ifs, patiently) -> None:
    found, jobs = what_ifs(ENDS), []
    for at_us in range(KEPT + 2):
        order = WhatIfJobSpec(ORDER.question, {}, at_us)
        jobs.append(patiently(lambda order=order: begun(found, order, "ada")))
        ended(found, jobs[-1], patiently)
    assert [found.job_status(job) is None for job in jobs] == [True, True, *[False] * KEPT]


def test_no_name_leads_out_of_the_folder(what_ifs, tmp_path) -> None:
    found = what_ifs(ENDS)
    assert found.job_status(None) is None, "nobody has asked so far"
    known = what_ifs(ENDS).folder / what_ifs(ENDS).start_job(ORDER, "ada") / "asked.json"
    (tmp_path / "asked.json").write_bytes(known.read_bytes())
    for name in ("..", "", "../" * 10, "a" * 31, "/" * 32):
        assert found.job_status(name) is None


def test_progress_and_what_is_told_are_there_whole(tmp_path) -> None:
    progress(tmp_path, WhatIfProgress("plays new", 3, 9))
    write_result(tmp_path, WhatIfResult(fault="no"))
    assert (tmp_path / "told.json").read_text() == '{"result":null,"fault":"no"}'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["progress.json", "told.json"]


def test_control_a_lock_ends_with_its_process(tmp_path) -> None:
    """What all of this rests on, seen by itself."""
    path = tmp_path / "lock"
    lines = (
        "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT);"
        "fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", lines, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    assert whatif_jobs.is_locked(path)
    process.kill()
    process.wait()
    assert not whatif_jobs.is_locked(path)
    process.stdin.close()
    process.stdout.close()


def test_one_that_is_cancelled_ends_and_makes_room(what_ifs, patiently) -> None:
    found, elsewhere = what_ifs(WAITS), what_ifs(ENDS)  # another worker of the host is asked
    job = found.start_job(ORDER, "ada")
    pid = int(patiently(lambda: (found.folder / job / "pid").exists() and
                        (found.folder / job / "pid").read_text()))  # fmt: skip
    elsewhere.cancel(job, "eve")
    told = ended(elsewhere, job, patiently)
    assert (told["state"], told["result"]) == ("cancelled", None)
    assert patiently(lambda: elsewhere.job_status(job)["fault"] == "it was cancelled by eve")
    assert patiently(lambda: not Path(f"/proc/{pid}").exists()), "its process is gone"
    assert patiently(lambda: begun(elsewhere, ORDER, "eve"))


def test_what_has_ended_or_never_was_is_not_cancelled(what_ifs, patiently) -> None:
    found = what_ifs(ENDS)
    job = found.start_job(ORDER, "ada")
    assert ended(found, job, patiently)["state"] == "done"
    assert found.cancel(job, "eve")["state"] == "done"
    assert found.job_status(job)["state"] == "done"
    assert found.cancel("0" * 32, "eve") is None
