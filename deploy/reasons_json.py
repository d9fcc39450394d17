"""The router's reasons as JSON for the ledger: `python -m deploy.reasons_json`.

`make settings` runs it. Ledger and dashboard may not import the router, so they read this file. For
each reason it holds the overflow group and the sentence, in the order of `router/reasons.py`.
"""

import json
from pathlib import Path

from router.reasons import REASONS

WRITTEN = Path(__file__).resolve().parents[1] / "ledger" / "reasons.json"


def text() -> str:
    """Return the text of the file, one line for each reason."""
    rows = (
        f"  {json.dumps(reason.value)}: {json.dumps([traits.overflow.value, traits.sentence])}"
        for reason, traits in REASONS.items()
    )
    return "{\n" + ",\n".join(rows) + "\n}\n"


def main() -> None:
    WRITTEN.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
