"""Profile of tuned flags: the result of a search, which `serve` starts engines with.

    {"breakeven_profile": 1, "flags": ["--max-num-seqs", "1024"]}

A start needs these members only. The others say what was measured, and the gain.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = 1
_SETTINGS = frozenset(
    [
        "--model",
        "--tokenizer",
        "--served-model-name",
        "--revision",
        "--code-revision",
        "--download-dir",
        "--hf-token",
        "--config",
        "--trust-remote-code",
        "--middleware",
        "--worker-cls",
        "--worker-extension-cls",
        "--scheduler-cls",
        "--logits-processors",
        "--tool-parser-plugin",
        "--reasoning-parser-plugin",
        "--chat-template",
        "--trust-request-chat-template",
        "--lora-modules",
        "--kv-transfer-config",
        "--profiler-config",
        "--host",
        "--port",
        "--uds",
        "--api-key",
        "--root-path",
        "--ssl-keyfile",
        "--ssl-certfile",
        "--ssl-ca-certs",
        "--allowed-origins",
        "--allowed-methods",
        "--allowed-headers",
        "--allowed-local-media-path",
        "--allowed-media-domains",
        "--otlp-traces-endpoint",
        "--kv-events-config",
        "--data-parallel-address",
    ]
)
"""What a profile may not say: which code runs, whose model it is, where it listens and sends."""


class ProfileError(ValueError):
    """A file holds no profile; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class TunedProfile:
    """Flags of a profile. `config_sha256` is the hash of the model's config.json.

    It is `None` if a person wrote the file.
    """

    flags: tuple[str, ...]
    config_sha256: str | None = None
    about: Mapping[str, Any] | None = None


def write(path: Path, flags: Sequence[str], model: Path, about: Mapping[str, Any]) -> None:
    document = {
        "breakeven_profile": FORMAT,
        "flags": list(remove_flags(flags, tuple(_SETTINGS))),
        "config_sha256": digest(model),
        "about": dict(about),
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> TunedProfile:
    """Read a profile. Raises `ProfileError` when the file is missing or not valid."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        words = f"the file `{path}` does not exist: `breakeven engine tune` writes one"
        raise ProfileError(words) from error
    except (OSError, ValueError) as error:
        raise ProfileError(f"`{path}` cannot be read: {error}") from error
    if not isinstance(document, dict) or document.get("breakeven_profile") != FORMAT:
        raise ProfileError(
            f"`{path}` is not a profile of `breakeven engine tune` in format {FORMAT}"
        )
    flags = document.get("flags")
    if not isinstance(flags, list) or not all(isinstance(flag, str) for flag in flags):
        raise ProfileError(f"`{path}`: `flags` must be a list of texts: write numbers in quotes")
    strange = next((flag for flag in flags if _name(flag).partition(".")[0] in _SETTINGS), None)
    if strange is not None:
        words = (
            f"`{path}`: {strange.partition('=')[0]} does not change the engine's speed, so it does"
        )
        raise ProfileError(f"{words} not belong in a profile: set it in the engine's own `flags`")
    about, sha256 = document.get("about"), document.get("config_sha256")
    return TunedProfile(
        tuple(flags),
        sha256 if isinstance(sha256, str) else None,
        about if isinstance(about, dict) else None,
    )


def digest(model: Path) -> str:
    return hashlib.sha256((model / "config.json").read_bytes()).hexdigest()


def remove_flags(flags: Sequence[str], stated: Sequence[str]) -> tuple[str, ...]:
    """Return a profile's flags without those that the user states, which take precedence."""
    names = {_name(word) for word in stated if word.startswith("--")}
    kept: list[str] = []
    leaves_out = False
    for word in flags:
        if word.startswith("--"):
            leaves_out = _name(word) in names
        if not leaves_out:
            kept.append(word)
    return tuple(kept)


def number(flags: Sequence[str], name: str) -> int | None:
    """Return the value of a numeric flag (`--x 1` or `--x=1`), or `None`. The last one counts."""
    found = None
    for place, word in enumerate(flags):
        head, equals, value = word.partition("=")
        if head == name:
            text = value if equals else next(iter(flags[place + 1 : place + 2]), "")
            found = int(text) if text.isdecimal() else found
    return found


def _name(word: str) -> str:
    """Return a flag's name, equal for `--enable-x=1` and `--no-enable-x`."""
    return word.partition("=")[0].replace("_", "-").replace("--no-", "--", 1)
