"""Help, the version and a shell's completion import nothing that they do not need."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gateway.cli.app import app
from ledger.database import make_engine, migrate, sqlite_url
from ledger.declared import declare

HEAVY = (
    "alembic", "cryptography", "fastapi", "httpx", "litellm", "msgspec", "psycopg", "pydantic",
    "rich", "sqlalchemy", "starlette", "uvicorn", "uvloop", "yaml", "zmq",
    "backends", "ledger", "router",
)  # fmt: skip
TYPERS = {"pydantic"}  # Typer's own, once an option is read
PROGRAM = """
import json, sys
from gateway.cli.main import main
sys.argv[0] = "breakeven"
try:
    main()
finally:
    print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)
"""


def imported(*words: str, **environ: str) -> tuple[str, set[str]]:
    """What it prints, and the packages that it imported for that."""
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], check=False, capture_output=True, text=True,
        env={**os.environ, **environ},
    )  # fmt: skip
    return answer.stdout, set(json.loads(answer.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("words", "shown"),
    [(("--help",), "serve"), (("--version",), "breakeven "), (("policy", "--help"), "explain")],
    ids=str,
)
def test_help_and_version_import_nothing_heavy(words, shown) -> None:
    told, packages = imported(*words)
    assert shown in told
    assert packages & set(HEAVY) <= TYPERS


@pytest.mark.parametrize(
    ("line", "offered"), [("breakeven po", "policy"), ("breakeven policy hi", "history")]
)
def test_completion_of_names_imports_nothing_heavy(line, offered) -> None:
    environ = {
        "_BREAKEVEN_COMPLETE": "complete_bash", "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }  # fmt: skip
    told, packages = imported(**environ)
    assert told.split() == [offered]
    assert packages & set(HEAVY) <= TYPERS


def test_options_are_completed_too() -> None:
    environ = {
        "_BREAKEVEN_COMPLETE": "complete_bash", "COMP_WORDS": "breakeven keys list --j",
        "COMP_CWORD": "3",
    }  # fmt: skip
    assert imported(**environ)[0].split() == ["--json"]


def test_a_typo_is_told_what_it_may_have_meant() -> None:
    assert "Did you mean 'policy'?" in CliRunner().invoke(app, ["polcy"]).stderr
    answer = CliRunner().invoke(app, ["policy", "explian"])
    assert (answer.exit_code, "Did you mean 'explain'?" in answer.stderr) == (2, True)


def test_what_a_command_needs_is_imported_when_it_is_called(monkeypatch) -> None:
    for name in [name for name in sys.modules if name == "gateway.cli.claims"]:
        monkeypatch.delitem(sys.modules, name)
    typer.main.get_command(app)
    assert "gateway.cli.claims" not in sys.modules
    assert CliRunner().invoke(app, ["claims", "--json"]).exit_code == 0
    assert "gateway.cli.claims" in sys.modules


UNNEEDED = (
    "aiohttp", "alembic", "cryptography", "fastapi", "httpx", "jwt", "litellm", "numpy",
    "opentelemetry", "pandas", "prometheus_client", "pyarrow", "pygments",
    "streamlit", "uvicorn", "uvloop", "zmq",
)  # fmt: skip


@pytest.fixture(scope="module")
def books(tmp_path_factory) -> str:
    """A configuration with a ledger that is up to date."""
    place = tmp_path_factory.mktemp("books")
    config = place / "breakeven.yaml"
    config.write_text(
        f"state_dir: {place}\n"
        "models: {m: {targets: [standin/m]}}\n"
        "providers: {standin: {start: true, simulated: true, prices_as: openai/gpt-4o-mini}}\n"
    )
    url = sqlite_url(place / "ledger.db")
    migrate(url)
    engine = make_engine(url)
    declare(engine, contracts=[], budgets=[], config=("v1", ""), at_us=1)
    engine.dispose()
    return str(config)


COMMANDS = (
    "check", "ledger report", "ledger verify", "ledger changes", "keys list", "prices show",
    "policy show", "policy history", "target list", "route list", "rates list", "invoices list",
)  # fmt: skip
# One process runs them all: what none of them needs is missing until the end.
PROGRAM_OF_ALL = """
import contextlib, io, json, sys
from gateway.cli.app import app
seen, told = set(), {}
for words in sys.argv[2:]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = app([*words.split(), "--config", sys.argv[1]], standalone_mode=False)
    packages = {name.partition('.')[0] for name in sys.modules}
    told[words] = [code, len(printed.getvalue()), sorted(packages - seen)]
    seen |= packages
print(json.dumps(told))
"""


def test_what_a_command_on_this_hosts_ledger_does_not_need_is_not_imported(books) -> None:
    """An HTTP client, migrations, a server, charts: each takes a tenth of a second and more."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM_OF_ALL, books, *COMMANDS],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert set(told) == set(COMMANDS)
    assert "sqlalchemy" in told["check"][2], "it did its work"
    for words, (code, printed, packages) in told.items():
        assert (code, printed > 0) == (None, True), words
        assert set(packages) & set(UNNEEDED) == set(), words


NOT_FOR_KEYS = (
    "backends.engine.adapters", "backends.engine.environment", "backends.engine.flags",
    "backends.simulator", "ledger.journals",
)  # fmt: skip


def test_what_starts_engines_is_not_imported_to_read_a_configuration(books) -> None:
    """Red before: 13 modules, among them what reads weights."""
    program = (
        "import json, sys\nfrom gateway.cli.app import app\n"
        "app(sys.argv[1:], standalone_mode=False)\nprint(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "keys", "list", "--config", books],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    modules = set(json.loads(done.stdout.splitlines()[-1]))
    assert "ledger.identity.keychanges" in modules, "it did its work"
    assert modules & set(NOT_FOR_KEYS) == set()


# Verbs of the ledger, and what is not imported for any of them once a file is known.
KNOWN = ("keys list", "ledger changes", "ledger findings", "invoices list")
NOT_FOR_KNOWN = (
    "backends", "fastapi", "gateway.config.crosschecks", "gateway.config.schema",
    "gateway.config.settings", "httpx", "litellm", "router.types", "yaml",
)  # fmt: skip
PROGRAM_OF_KNOWN = """
import json, sys
from gateway.cli.app import app
told = {}
for words in sys.argv[2:]:
    app([*words.split(), "--config", sys.argv[1]], standalone_mode=False)
    told[words] = sorted(sys.modules)
print(json.dumps(told))
"""


def test_verbs_of_the_ledger_do_not_judge_a_file_that_is_known(books) -> None:
    """The control is the first process, which judges it."""
    with Path(books).open("a") as file:
        file.write("# not as it was known\n")
    for is_known in (False, True):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM_OF_KNOWN, books, *KNOWN[: None if is_known else 1]],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        for words, modules in json.loads(done.stdout.splitlines()[-1]).items():
            assert "ledger.database" in modules, "it did its work"
            read = set(modules) & set(NOT_FOR_KNOWN)
            assert "gateway.config.schema" in read if not is_known else read == set(), words


def test_a_gateway_elsewhere_is_asked_by_a_client(books) -> None:
    """The control."""
    elsewhere = {"BREAKEVEN_GATEWAY": "http://127.0.0.1:9", "BREAKEVEN_API_KEY": "k"}
    _, packages = imported("keys", "list", "--config", books, **elsewhere)
    assert "httpx" in packages


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("gateway.host.serve", {"alembic", "fastapi", "litellm", "streamlit", "uvicorn", "zmq"}),
        ("gateway.worker", {"alembic", "httpx", "litellm", "rich", "streamlit", "typer", "zmq"}),
        ("gateway.host.telemetry", {"alembic", "fastapi", "litellm", "streamlit", "typer"}),
        (
            "ledger.writer",
            {"alembic", "fastapi", "gateway", "httpx", "litellm", "pydantic", "yaml"},
        ),
        ("gateway.host.peers", {"alembic", "fastapi", "httpx", "litellm", "streamlit", "typer"}),
        ("gateway.host.upkeep", {"alembic", "fastapi", "httpx", "litellm", "streamlit", "typer"}),
        ("backends.simulator.server", {"gateway", "ledger", "litellm", "pydantic", "sqlalchemy"}),
    ],
)
def test_a_process_of_a_host_imports_nothing_of_another(module, unneeded) -> None:
    program = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    packages = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert packages & unneeded == set()
