"""The generated pages of the site: `python -m deploy.docsite.pages`, or `make settings`.

Each page is made from the code that it describes. A test compares the files with the result.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from deploy.docsite import (
    alerts_page,
    cli_page,
    errors_page,
    headers_page,
    http_page,
    litellm_page,
    metrics_page,
    prices_page,
    reasons_page,
)

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "how-to/alerts.md": alerts_page.text,
    "how-to/leave-litellm.md": litellm_page.text,
    "reference/cli.md": cli_page.text,
    "reference/errors.md": errors_page.text,
    "reference/headers.md": headers_page.text,
    "reference/http.md": http_page.text,
    "reference/metrics.md": metrics_page.text,
    "reference/price-terms.md": prices_page.text,
    "reference/reasons.md": reasons_page.text,
}


def main() -> None:
    """Write every page."""
    for name, text in PAGES.items():
        (DOCS / name).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
