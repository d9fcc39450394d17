"""Why this host's engines are as they are, in their parent's words: left for `engine status`."""

from collections.abc import Mapping
from pathlib import Path

from ledger.runnotes import find, leave

WORDS_FILE = "engines.json"


def leave_words(run_dir: Path, words: Mapping[str, str]) -> None:
    """By engine; of one that there is nothing to say of, nothing."""
    leave(run_dir / WORDS_FILE, {name: said for name, said in words.items() if said})


def words_of(run_dir: Path) -> Mapping[str, str]:
    """By engine; empty where no parent left any."""
    return find(run_dir / WORDS_FILE, dict[str, str]) or {}
