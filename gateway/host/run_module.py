"""Run a module's `main`, which reads `sys.argv`, in this process."""

import importlib
from importlib.util import find_spec


def run_module(name: str) -> None:
    """Call the `main` of a module, or of a package's `__main__`."""
    spec = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name = f"{name}.__main__"
    importlib.import_module(name).main()
