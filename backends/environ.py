"""The environment variables that every child process may see: a list of what is allowed.

A list of what is forbidden cannot be complete: keys and passwords go by any name, in any case,
and are parts of addresses. What is let through says where programs and files are, which language
people speak, and how accelerators, threads and numeric libraries behave; within a family, a name
that sounds like a secret (`HF_TOKEN`, `VLLM_API_KEY`) stays behind.
"""

import re
from collections.abc import Mapping

_ALLOWED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LANGUAGE"),
        *("TMPDIR", "TMP", "TEMP", "LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "CPATH"),
        *("CC", "CXX", "TOKENIZERS_PARALLELISM"),
        *("OPENSSL_CONF", "OPENSSL_MODULES", "GLIBC_TUNABLES"),  # read at a program's start only
    }
)
_FAMILIES = (
    *("LC_", "XDG_", "PYTHON", "MALLOC_", "OMP_", "KMP_", "GOMP_", "MKL_", "OPENBLAS_", "NUMEXPR_"),
    *("CUDA", "NVIDIA_", "NCCL_", "NVSHMEM_", "GLOO_", "UCX_", "VLLM_", "TORCH", "PYTORCH_"),
    *("TRITON_", "FLASHINFER_", "HF_", "TRANSFORMERS_"),
)
_SOUNDS_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|PWD|CRED|AUTH", re.IGNORECASE)


def sounds_secret(name: str) -> bool:
    """Return whether a variable of this name may hold what nobody else should see."""
    return _SOUNDS_SECRET.search(name) is not None


def plain_environ(base: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that holds no secret."""
    return {
        name: value
        for name, value in base.items()
        if name in _ALLOWED or (name.startswith(_FAMILIES) and not sounds_secret(name))
    }
