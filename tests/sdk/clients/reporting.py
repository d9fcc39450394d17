"""Runs the checks of a client program, all or those on the command line; tells them as JSON."""

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

Check = Callable[[Any], object]


def report(sdk: str, client: Any, checks: Sequence[Check]) -> None:
    wanted = sys.argv[1:] or [check.__name__ for check in checks]
    found: dict[str, object] = {"sdk": version(sdk)}
    for check in checks:
        if check.__name__ in wanted:
            try:
                found[check.__name__] = check(client)
            except Exception:  # noqa: BLE001  (one broken check must not hide the others)
                found[check.__name__] = {"failed": traceback.format_exc()[-1500:]}
    print(json.dumps(found))
