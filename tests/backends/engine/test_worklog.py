"""A log of long work: read back whole, cut where it was cut, refused where it is another's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from backends.engine.worklog import OtherWork, WorkLog, open_log

ROOT = Path(__file__).parents[3]
ABOUT = {"model": "tiny", "load": {"users": 4}}


def test_what_is_done_is_there_the_next_time(tmp_path):
    path = tmp_path / "logs" / "work.jsonl"
    log = WorkLog(path, ABOUT)
    log.add("a", {"value": 1})
    log.add("b", {"value": (2, 3)})
    log.add("a", {"value": 4})
    again = WorkLog(path, ABOUT)
    assert again.done == log.done
    assert again.done["a"] == {"key": "a", "value": 4}, "the last one counts"
    assert again.done["b"]["value"] == [2, 3]


def test_a_line_that_was_cut_off_is_not_done_and_the_next_is_whole(tmp_path):
    path = tmp_path / "work.jsonl"
    WorkLog(path, ABOUT).add("a", {"value": 1})
    with path.open("a") as file:
        file.write('{"key": "b", "val')
    log = WorkLog(path, ABOUT)
    assert set(log.done) == {"a"}
    log.add("b", {"value": 2})
    assert set(WorkLog(path, ABOUT).done) == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps({"about": ABOUT | {"model": "other"}}) + "\n", r"\(model differ\)"),
        ('{"something": 1}\n', "load, model differ"),
        ("not json\n", "not a log of this kind"),
        ("[1]\n", "not a log of this kind"),
    ],
)
def test_a_log_of_other_work_is_refused_and_left_alone(tmp_path, text, said):
    path = tmp_path / "work.jsonl"
    path.write_text(text)
    with pytest.raises(OtherWork, match=said):
        WorkLog(path, ABOUT)
    assert path.read_text() == text


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OtherWork, match="cannot be"):
        WorkLog(tmp_path / "file" / "work.jsonl", ABOUT)


def test_one_process_at_a_time_works_on_a_log(tmp_path):
    path = tmp_path / "logs" / "work.jsonl"
    with open_log(path):
        with pytest.raises(OtherWork, match="another process works on it: wait until it ends"):
            open_log(path).__enter__()
        WorkLog(path, ABOUT).add("a", {"value": 1})
    with open_log(path):
        assert set(WorkLog(path, ABOUT).done) == {"a"}


def test_a_killed_process_holds_nothing(tmp_path):
    path = tmp_path / "work.jsonl"
    with (
        pytest.raises(OtherWork, match="cannot be written: Is a directory"),
        open_log(tmp_path),
    ):
        pass
    code = (
        "import sys, time; from pathlib import Path; from backends.engine.worklog import open_log\n"
        "with open_log(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        process.stdout.readline()
        with pytest.raises(OtherWork, match="another process works on it"):
            open_log(path).__enter__()
        process.kill()
    with open_log(path):
        pass


def test_what_cannot_be_kept_is_told(tmp_path):
    path = tmp_path / "work.jsonl"
    log = WorkLog(path, ABOUT)
    path.unlink()
    path.mkdir()
    with pytest.raises(OtherWork, match="cannot be written: Is a directory"):
        log.add("a", {"value": 1})
