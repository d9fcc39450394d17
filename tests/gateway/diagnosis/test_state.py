"""State directories that a gateway cannot use, or should not."""

import json
import socket
from pathlib import Path

import pytest

from gateway.config.settings import parse
from gateway.config.statedir import hold
from gateway.diagnosis import state
from gateway.diagnosis.observation import DoctorVerdict
from gateway.diagnosis.state import file_system_of, look_at_state

MOUNTS = """\
/dev/vda / ext4 rw 0 0
tmpfs /run tmpfs rw 0 0
server:/x /srv/with\\040blank nfs4 rw 0 0
overlay /srv/with\\040blank/over overlay rw 0 0
"""


def settings(place: Path, port: int = 0):
    config = {
        "state_dir": str(place), "server": {"port": port},
        "models": {"m": {"targets": ["openai/x"]}}, "providers": {"openai": {}},
    }  # fmt: skip
    return parse(json.dumps(config), name="test")


def verdicts(place: Path, **more: object) -> dict[str, DoctorVerdict]:
    found = look_at_state(settings(place, **more))
    return {finding.subject: finding.verdict for finding in found}


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    file = tmp_path / "mounts"
    file.write_text(MOUNTS)
    return file


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib", "ext4"),
        ("/run/x", "tmpfs"),
        ("/runner", "ext4"),
        ("/srv/with blank/a", "nfs4"),
        ("/srv/with blank/over/a", "overlay"),
    ],
)
def test_the_innermost_mount_counts(mounts, path, kind) -> None:
    assert file_system_of(Path(path), mounts) == kind


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [("tmpfs", "error"), ("nfs4", "warning"), ("overlay", "warning"), ("xfs", "ok")],
)
def test_file_systems_that_lose_rows_are_told(tmp_path, kind, verdict) -> None:
    file = tmp_path / "mounts"
    file.write_text(f"a / {kind} rw 0 0\n")
    assert state._file_system(tmp_path, file).verdict == verdict


def test_a_directory_that_is_not_there_is_no_fault_and_is_not_made(tmp_path) -> None:
    place = tmp_path / "a" / "b"
    found = verdicts(place)
    assert found["state"] is DoctorVerdict.NOTE
    assert found["port"] is DoctorVerdict.OK
    assert not place.parent.exists()


def test_a_file_in_its_place_is_an_error(tmp_path) -> None:
    (tmp_path / "state").write_text("")
    assert verdicts(tmp_path / "state") == {"state": DoctorVerdict.ERROR}


def test_a_full_disk_is_a_warning(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(state, "LEAST_BYTES", 2**62)
    assert verdicts(tmp_path)["disk"] is DoctorVerdict.WARNING


def test_a_port_that_somebody_has_is_an_error_unless_a_gateway_runs(tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert verdicts(tmp_path, port=port)["port"] is DoctorVerdict.ERROR
        lock = hold(settings(tmp_path))
        try:
            assert "port" not in verdicts(tmp_path, port=port)
        finally:
            lock.release()
