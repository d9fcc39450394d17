"""What the programs of the loop's clients have in common: their tool, their words, what they tell.

A program is given the names of checks, or none for all, and writes one JSON object: what each of
them saw, or the end of its traceback. `usage` of a check is what its library says was used, as
[input, output], where the library tells.
"""

import asyncio
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout

ASK = "What is the weather in Ghent?"
BASE_URL = os.environ["OPENAI_BASE_URL"]
ROOT = os.environ["ANTHROPIC_BASE_URL"]
KEY = os.environ["OPENAI_API_KEY"]
CALLS: list[str] = []  # what the tool was asked


def weather(town: str) -> str:
    """Weather of a town.

    Args:
        town: Name of the town.
    """
    CALLS.append(town)
    return f"rain in {town}"


def looped(text: object, usage: list[int] | None = None) -> dict:
    """What came of a loop in which the tool was called."""
    return {"text": str(text), "towns": list(CALLS), "usage": usage}


def tell(*checks: Callable) -> None:
    """Run the named checks; what a library writes goes to standard error."""
    if sys.argv[1:] == ["--names"]:
        print(json.dumps([check.__name__ for check in checks]))
        return
    keys = json.loads(os.environ.get("LOOP_KEYS", "{}"))  # one a check, so that each has its rows
    found = {}
    for check in checks:
        name = check.__name__
        check.__globals__["KEY"] = keys.get(name, KEY)
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        CALLS.clear()
        try:
            with redirect_stdout(sys.stderr):
                answer = check()
                found[name] = asyncio.run(answer) if inspect.iscoroutine(answer) else answer
        except Exception:  # noqa: BLE001  (one broken check must not hide the others)
            found[name] = {"failed": traceback.format_exc()[-2500:]}
    print(json.dumps(found), flush=True)
    sys.stdout.flush()
    os._exit(0)  # libraries leave threads of telemetry behind
