"""Which variables reach a child process that is owed no secret."""

import pytest

from backends.environ import plain_environ


@pytest.mark.parametrize(
    "name",
    [
        *("BREAKEVEN_LEDGER_URL", "MY_OPENAI_CRED", "OPENAI_KEY_2", "openai_api_key", "DB_PASS"),
        *("HF_TOKEN", "VLLM_API_KEY", "AWS_PROFILE", "HTTPS_PROXY", "PGPASSWORD", "vllm_key"),
    ],
)
def test_secrets_of_any_name_stay_behind(name) -> None:
    assert plain_environ({name: "x", "PATH": "/bin"}) == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "name",
    [
        *("HOME", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG"),
        *("NVIDIA_VISIBLE_DEVICES", "VLLM_LOGGING_LEVEL", "HF_HOME", "OMP_NUM_THREADS"),
        *("TOKENIZERS_PARALLELISM", "PYTHONPATH", "NVSHMEM_DISABLE_NVLS"),
    ],
)
def test_what_programs_need_to_run_is_let_through(name) -> None:
    assert plain_environ({name: "x"}) == {name: "x"}
