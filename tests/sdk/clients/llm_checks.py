"""The command `llm` with a model of its own configuration, as its users type it: told as JSON.

    python llm_checks.py    reads OPENAI_BASE_URL, OPENAI_API_KEY and HOME

Nothing of the product is imported. `usage` is what the command says with `--usage`.
"""

import json
import os
import re
import subprocess
import sys
import traceback
from importlib.metadata import version
from pathlib import Path

ASK = "Name a machine."
SETTINGS = Path(os.environ["HOME"]) / "llm"
WRONG = "gw_0000000000000000_" + "0" * 64


def configure() -> None:
    base = os.environ["OPENAI_BASE_URL"]
    models = [
        {"model_id": name, "model_name": model, "api_base": base, "api_key_name": "gateway",
         "supports_schema": True, "supports_tools": True}
        for name, model in (("mine", "chat"), ("missing", "nowhere"))
    ]  # fmt: skip
    SETTINGS.mkdir(parents=True, exist_ok=True)
    (SETTINGS / "extra-openai-models.yaml").write_text(json.dumps(models), encoding="utf-8")
    llm("keys", "set", "gateway", "--value", os.environ["OPENAI_API_KEY"])


def llm(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("llm"), *words],
        env={**os.environ, "LLM_USER_PATH": str(SETTINGS)},
        check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip


def asked(*words: str) -> dict:
    answer = llm("-m", "mine", "-o", "max_tokens", "12", "--usage", *words, ASK)
    if answer.returncode:
        raise RuntimeError(answer.stderr)
    return {"text": answer.stdout.strip(), "usage": used(answer.stderr)}


def used(said: str) -> list[list[int]]:
    found = re.search(r"([\d,]+) input, ([\d,]+) output", said)
    return [[int(number.replace(",", "")) for number in found.groups()]]


def structured() -> dict:
    answer = llm("-m", "mine", "--usage", "--schema", "name str, count int", "A part?")
    return {"document": json.loads(answer.stdout), "usage": used(answer.stderr)}


def refused(*words: str) -> dict:
    answer = llm(*words, ASK)
    return {"status": answer.returncode, "said": answer.stderr.strip()}


CHECKS = {
    "streamed": asked,
    "whole": lambda: asked("--no-stream"),
    "structured": structured,
    "bad_key": lambda: refused("-m", "mine", "--key", WRONG),
    "unknown_model": lambda: refused("-m", "missing"),
}


def main() -> None:
    configure()
    found = {"versions": {"llm": version("llm")}}
    for name, check in CHECKS.items():
        try:
            found[name] = check()
        except Exception:  # noqa: BLE001  (one broken check must not hide the others)
            found[name] = {"failed": traceback.format_exc()[-1500:]}
    print(json.dumps(found))


main()
