"""Run the SDKs' own suites against a gateway, and write what fails and why: `SUITES.md`.

    PYTHONPATH=. python tests/sdk/suites.py NAME CHECKOUT PYTHON

NAME is `openai` or `anthropic`, CHECKOUT the repository of its SDK for Python, and PYTHON an
environment with that SDK and the tools of its tests.
Every failure is grouped by what the gateway (or the SDK) said, and each group has a verdict in
`VERDICTS`; a group without one ends the program with status 1.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from loop_gateway import opened_gateway

HERE = Path(__file__).parent
TABLE = HERE / "SUITES.md"
HOOK = """
import json, os
def pytest_runtest_logreport(report):
    if report.when == "call" or report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        said = str(crash and crash.message)
        line = {"test": report.nodeid, "outcome": report.outcome, "said": said[:1500]}
        with open(os.environ["OUTCOMES"], "a") as file:
            file.write(json.dumps(line) + "\\n")
"""
SUITES = {
    "openai": (
        ("chat", "test_completions.py", "test_embeddings.py", "test_models.py", "responses",
         "test_responses.py", "test_batches.py", "test_files.py", "audio", "test_images.py",
         "test_moderations.py", "conversations", "test_conversations.py"),
        "My API Key", "/v1",
    ),
    "anthropic": (
        ("test_messages.py", "test_models.py", "test_completions.py", "messages",
         "beta/test_messages.py", "beta/test_models.py", "beta/messages"),
        "my-anthropic-api-key", "",
    ),
}  # fmt: skip
MODELS = (
    "gpt-5.1", "gpt-5.4", "model", "claude-opus-4-6", "claude-sonnet-4-5-20250929",
    "claude-sonnet-4-6", "claude-2.1", "model_id",
)  # fmt: skip
# Simulated providers for the kinds that the scripted upstream does not serve: the suites' names of
# models, the price of each, and the kinds.
OTHER_KINDS = {
    "writes": ("gpt-3.5-turbo-instruct", "openai/gpt-3.5-turbo-instruct", "completion"),
    "draws": ("gpt-image-1 gpt-image-2", "openai/gpt-image-1", "image_generation image_edit"),
    "speaks": ("tts-1", "openai/tts-1", "speech"),
    "hears": ("whisper-1 gpt-4o-transcribe", "openai/whisper-1", "transcription"),
    "judges": ("omni-moderation-latest", "openai/omni-moderation-latest", "moderation"),
}
# What was said (a pattern), the verdict, and why. The first that matches counts. `right`: another
# answer would be wrong; `refused`: left out, and the answer says so; `set-up`: of this run.
VERDICTS: tuple[tuple[str, str, str], ...] = (
    (
        "404 (Conversation|Response|Chat completion|Previous response|The file|The batch)",
        "right",
        "the suite asks for a name that nobody made",
    ),
    (
        "404 .*(completion_id|response_id|batch_id|file_id|conversation_id)",
        "right",
        "the suite asks for a name that nobody made",
    ),
    (
        "`input` is required|`model` is required",
        "refused",
        "without it nothing says which model is asked, or what",
    ),
    ("`after_id` names no model", "right", "the suite asks for a page after a model not listed"),
    ("`limit`: Input should be", "refused", "a page of no entries"),
    ("`purpose` must be", "refused", "files are kept for batches"),
    ("Variations of pictures are not served", "refused", "a service that is left out"),
    ("`previous_response_id` cannot be sent together", "right", "so it is at OpenAI"),
    ("Models are not deleted by a request", "refused", "the configuration names models"),
    ("`stream_options` needs `stream", "right", "so it is at OpenAI"),
    ("`max_completion_tokens` must be at least 1", "right", "an answer of no tokens"),
    ("retired text completions", "refused", "Anthropic retired it"),
    ("`fallbacks`", "refused", "the gateway's own policy says where a request goes next"),
    ("`claude-1.3` does not exist", "set-up", "no alias of that name in this run"),
    ("assert '256x256' in", "set-up", "the simulated provider makes sizes that its model lacks"),
    ("`container`|`mcp_servers`", "refused", "it runs at Anthropic"),
)


FORMS = "method|raw_response|streaming_response|path_params"
TESTS = re.compile(rf"\.py::Test\w+::test_({FORMS})_?")


def said_shortly(said: str) -> str:
    """The error's own sentence, without names that change."""
    found = re.search(r"Error code: (\d+) - .*?'message': (['\"])(.*?)\2[,}]", said, re.DOTALL)
    text = f"{found[1]} {found[3]}" if found else said.splitlines()[0] if said else "nothing"
    text = re.sub(r"[0-9a-f]{12,}|0x[0-9a-f]+", "...", text)
    return re.sub(r"\s+", " ", text)[:160]


def parts_of_config() -> tuple[dict, dict]:
    """Models and providers of a run; `string` is a model of every kind but embeddings."""
    models: dict[str, dict] = {each: {"same_as": "loop"} for each in MODELS}
    providers, every = {}, ["loops/loop"]
    for provider, (names, price, kinds) in OTHER_KINDS.items():
        providers[provider] = {
            "simulated": True, "start": True, "prices_as": price, "kinds": kinds.split()
        }  # fmt: skip
        models |= {each: {"targets": [f"{provider}/{each}"]} for each in names.split()}
        every.append(f"{provider}/{names.split()[0]}")
    return {**models, "string": {"targets": every}}, providers


def run_suite(name: str, checkout: Path, python: str) -> list[dict]:
    folders, key_text, suffix = SUITES[name]
    with opened_gateway(*parts_of_config()) as (gateway, folder):
        tests = folder / "suite" / "tests"
        shutil.copytree(checkout / "tests", tests)
        text = (tests / "conftest.py").read_text(encoding="utf-8")
        text = text.replace(f'"{key_text}"', f'"{gateway.key(team="suite")}"')
        (tests / "conftest.py").write_text(text + HOOK, encoding="utf-8")
        outcomes = folder / "outcomes"
        outcomes.touch()
        environ = {**os.environ, "TEST_API_BASE_URL": gateway.root + suffix,
                   "OUTCOMES": str(outcomes), "NO_PROXY": "127.0.0.1"}  # fmt: skip
        environ.pop("PYTHONPATH", None)
        words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=",
                 "-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=session",
                 "-k", "loose and not Async",
                 *(f"tests/api_resources/{each}" for each in folders)]  # fmt: skip
        answer = subprocess.run(words, cwd=tests.parent, env=environ, check=False,
                                capture_output=True, text=True)  # fmt: skip
        print(answer.stdout[-300:], answer.stderr[-500:])
        return [json.loads(line) for line in outcomes.read_text("utf-8").splitlines()]


def table_of(name: str, outcomes: list[dict]) -> tuple[list[str], list[str]]:
    """Lines of the table, and what has no verdict."""
    groups: dict[str, list[str]] = defaultdict(list)
    passed = sum(each["outcome"] == "passed" for each in outcomes)
    for each in outcomes:
        if each["outcome"] == "failed":
            test = each["test"].removeprefix("tests/api_resources/").partition("[")[0]
            test = TESTS.sub(" ", test)
            groups[said_shortly(each["said"])].append(test)
    failed = sum(map(len, groups.values()))
    lines = [f"## {name}: {passed} passed, {failed} failed", "",
             "| failed | said | verdict | why | where |", "|---|---|---|---|---|"]  # fmt: skip
    missing = []
    for said, tests in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        verdict = next((each for each in VERDICTS if re.search(each[0], said)), None)
        if verdict is None:
            missing.append(said)
        _, word, why = verdict or ("", "?", "no reason is written")
        places = ", ".join(sorted(set(tests))[:6])
        cut = said.replace("|", "/")
        lines.append(f"| {len(tests)} | {cut} | {word} | {why} | {places} |")
    return [*lines, ""], missing


def main(name: str, checkout: str, python: str) -> int:
    lines, missing = table_of(name, run_suite(name, Path(checkout).resolve(), python))
    before = TABLE.read_text(encoding="utf-8") if TABLE.exists() else HEAD
    parts = [
        part for part in re.split(r"(?m)^(?=## )", before) if not part.startswith(f"## {name}:")
    ]
    TABLE.write_text("".join([*parts, "\n".join(lines), "\n"]), encoding="utf-8")
    for said in missing:
        print(f"no verdict: {said}")
    return 1 if missing else 0


HEAD = """# Suites of the SDKs, and what fails

Written by `tests/sdk/suites.py`, which runs the suites that each SDK has of its own API against a
gateway whose upstream is scripted, each check loose and not asynchronous.
Each group of failures has a reason. `right`: another answer would be wrong; `refused`: left out,
and the answer says so; `set-up`: this run has no such target.

"""

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
