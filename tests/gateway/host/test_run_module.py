"""Modules and packages are run by their `main`."""

import sys
from pathlib import Path

import pytest

from gateway.host.run_module import run_module


@pytest.mark.parametrize("name", ["plain_program", "whole_program"])
def test_a_package_is_run_by_its_main(tmp_path: Path, monkeypatch, name: str) -> None:
    (tmp_path / "plain_program.py").write_text("def main(): raise SystemExit(3)")
    package = tmp_path / "whole_program"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("def main(): raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit) as ended:
        run_module(name)
    assert ended.value.code == 3
    for module in ("plain_program", "whole_program", "whole_program.__main__"):
        sys.modules.pop(module, None)
