"""The router's reasons for the books: `python -m deploy.reasons_json`, or `make settings`.

Ledger and dashboard may not import the router. They read this file: overflow group and sentence by
word, in the order of `router/reasons.py`.
"""

import json
from pathlib import Path

from router.reasons import REASONS

WRITTEN = Path(__file__).resolve().parents[1] / "ledger" / "reasons.json"


def text() -> str:
    """Return the file: one line for each reason."""
    rows = (
        f"  {json.dumps(reason.value)}: {json.dumps([traits.overflow.value, traits.sentence])}"
        for reason, traits in REASONS.items()
    )
    return "{\n" + ",\n".join(rows) + "\n}\n"


def main() -> None:
    WRITTEN.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
