"""A plugin of pytest, `-p searched`: whatever a suite's hosts write is searched for their secrets.

Every `breakeven serve` that a test starts gets keys in its environment, a note with each of its
requests, and logs at debug where the test does not say another level. When it is closed, all files
that it left and all that it printed are searched for them, for the pepper, the dashboard's key, and
every token that was made for it. What was found goes to the file `SEARCHED_OUT`, a line a host.
`SEARCHED_CARELESS`: a line of each worker's log has the token, and nothing is struck out.
"""

import functools
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from sites import CARELESS, SITE

NAMES = (
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AZURE_API_KEY", "HF_TOKEN",
    "AWS_SECRET_ACCESS_KEY", "VAULT_TOKEN", "OIDC_CLIENT_SECRET", "PGPASSWORD", "SMTP_PASSWORD",
)  # fmt: skip
ITS_OWN = {"pepper", "dashboard.key"}  # files that are secrets, beside what they open
SHORTEST = 16  # bytes: a shorter one would be found by chance


def pytest_plugin_registered(plugin: object) -> None:
    place = Path(getattr(plugin, "__file__", "") or "")
    if place.parts[-3:] == ("tests", "gateway", "conftest.py"):
        wrap(plugin.Host)  # type: ignore[attr-defined]  # (a conftest)


def wrap(host: type) -> None:
    for name, around in (("__init__", made), ("key", keyed), ("ask", noted), ("close", closed)):
        setattr(host, name, around(getattr(host, name)))


def made(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: Any, state: Path, **changes: Any) -> None:
        original(self, state, **changes)
        self.canaries = {name: f"cnry{secrets.token_hex(16)}" for name in (*NAMES, "a note")}
        self.environ.update({name: self.canaries[name] for name in NAMES})
        settings = yaml.safe_load(self.config.read_text())
        settings["logs"] = {"level": "debug", **settings.get("logs", {})}
        self.config.write_text(yaml.safe_dump(settings, sort_keys=False))
        kept, site = state / "kept", state / "careless"
        kept.mkdir()
        self.serve = f"KEPT = {str(kept)!r}\n{SITE}\n{self.serve}"
        if os.environ.get("SEARCHED_CARELESS"):
            site.mkdir()
            (site / "sitecustomize.py").write_text(f"import logging, sys\n{CARELESS}")
            self.environ["PYTHONPATH"] = str(site)

    return init


def keyed(original: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(original)
    def key(self: Any, name: str, **spec: Any) -> str:
        token = original(self, name, **spec)
        self.canaries[f"key {len(self.canaries)}"] = token.rpartition("_")[2]
        return token

    return key


def noted(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def ask(self: Any, model: str = "own", **members: Any) -> Any:
        return original(self, model, **{"metadata": {"note": self.canaries["a note"]}, **members})

    return ask


def closed(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def close(self: Any) -> None:
        try:
            original(self)
        finally:
            with Path(os.environ["SEARCHED_OUT"]).open("a") as out:
                out.write(json.dumps(searched(self)) + "\n")

    return close


def searched(host: Any) -> dict[str, Any]:
    """Hits in words, and of how many secrets in how many bytes."""
    wanted = {name: text.encode() for name, text in host.canaries.items()}
    for name in ITS_OWN:
        path = host.state / name
        if path.is_file():
            wanted[name] = path.read_bytes().strip()
            wanted[f"{name} in hex"] = wanted[name].hex().encode()
    wanted = {name: data for name, data in wanted.items() if len(data) >= SHORTEST}
    hits, size = [], 0
    for path in sorted(host.state.rglob("*")):
        if path.is_file() and path.name not in ITS_OWN:
            data = path.read_bytes()
            size += len(data)
            hits += [f"{name} in {path.relative_to(host.state)}" for name, secret in wanted.items()
                     if secret in data]  # fmt: skip
    return {"hits": hits, "secrets": len(wanted), "bytes": size}
