"""Delivery of a report into a folder. Mail is in `mail`, webhooks in `signed_webhook`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.control.mail import NotTaken
from gateway.newfile import new_file


def write_report(folder: Path, name: str, report: Mapping[str, Any]) -> None:
    """Write `NAME.txt` and `NAME.json`, each atomically. Raises `NotTaken`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, text in (("txt", report["text"]), ("json", json.dumps(report, indent=1))):
            with new_file(folder / f"{name}.{suffix}", replace=True) as file:
                file.write(text.encode())
    except OSError as error:
        raise NotTaken(f"cannot write to the folder {folder}: {error.strerror}") from None
