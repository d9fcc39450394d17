"""What the tests stand on, used as it is: gateways in a loop and as processes, and real servers."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def _tests(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_gateway = _tests("security_gateway_parts", "tests/gateway/conftest.py")
Host, Stack, eventually = _gateway.Host, _gateway.Stack, _gateway.eventually
