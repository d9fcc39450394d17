"""GPUs as the driver lists them: those that engines may see, and what is in use on them."""

import os
import stat

import pytest

from backends.engine import gpus


@pytest.mark.parametrize(("said", "held"), [("512\n1024\n", 1536 << 20), ("[N/A]\n", None)])
def test_the_memory_of_all_gpus_is_what_the_driver_says(tmp_path, monkeypatch, said, held):
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\nprintf '{said!s}'\n".replace("\n'", "'"))
    smi.chmod(smi.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert gpus.bytes_in_use() == held


@pytest.mark.parametrize(("visible", "held"), [("1", 1024 << 20), ("0,1", 1536 << 20)])
def test_memory_is_of_the_gpus_that_engines_may_see(tmp_path, monkeypatch, visible, held):
    """Each lists what it was asked for: `--id=1` one line of the two."""
    smi = tmp_path / "nvidia-smi"
    smi.write_text(
        "#!/bin/sh\nfor word; do case $word in --id=1) echo 1024; exit;; esac; done\n"
        "printf '512\\n1024\\n'\n"
    )
    smi.chmod(smi.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus.bytes_in_use() == held


def test_without_a_driver_there_is_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus.bytes_in_use() is None


@pytest.mark.parametrize(
    ("named", "seen"),
    [(None, ("0", "1")), ("1", ("1",)), ("GPU-5e, GPU-7c", ("GPU-5e", "GPU-7c")), ("", ())],
)
def test_engines_see_what_the_environment_names_or_all(tmp_path, monkeypatch, named, seen):
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\nprintf '0\\n1\\n'\n")
    smi.chmod(smi.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    if named is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert gpus.gpu_ids() == seen
