"""The environment variables that every child process may have, as an allow list.

A deny list cannot be complete: secrets have names of any form and are parts of addresses. Allowed
variables give paths of programs and files, the language, and settings of accelerators, threads and
numeric libraries. Within an allowed family, a name that suggests a secret (`HF_TOKEN`,
`VLLM_API_KEY`) is left out.
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
    """Return whether a variable's name suggests a secret."""
    return _SOUNDS_SECRET.search(name) is not None


def plain_environ(base: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment without secrets."""
    return {
        name: value
        for name, value in base.items()
        if name in _ALLOWED or (name.startswith(_FAMILIES) and not sounds_secret(name))
    }
