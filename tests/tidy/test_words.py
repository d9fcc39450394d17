"""Words that must not occur: vague names, unfinished places, silenced checks, this machine's paths.

In `router` and `ledger` also no clock, chance or id out of thin air: they come in by argument.
"""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from findings import assert_none
from walking import walk

VAGUE_FILES = {"helper", "helpers", "manager", "util", "utils", "common", "misc", "base_utils"}
VAGUE_CLASS = re.compile(r"(Manager|Helper|Helpers|Util|Utils)$")
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|Not" + r"ImplementedError)\b")
SILENCED = re.compile(r"#\s*(no" + r"qa|type:\s*ig" + r"nore)(.*)$")
UNCOVERED = "pragma: no " + "cover"
MACHINE = re.compile(
    "|".join(
        ("/wor" + "k/", "/roo" + "t/", "/hom" + r"e/\w+/", "bash_" + "jobs", r"\.lib" + "rary/")
    )
)
# A docstring names its subject, or begins with a verb: it is read alone, in an editor's hover.
OPENING = re.compile(
    r"(The same|Of|Who|Whom|Whose|Whoever|What|Whatever|Where|How|By which|As|And|So|That|There|"
    r"Whether|Why|When|From|Until|Without|Once|Those|Its|Nobody|Nothing)\b"
)
THIN_AIR = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "random": {"random", "randint", "choice", "shuffle", "uniform", "sample"},
    "uuid": {"uuid1", "uuid4"},
}


def word_faults(name: str, text: str) -> list[str]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if UNFINISHED.search(line) or UNCOVERED in line:
            found.append(f"{name}:{number}: unfinished: {line.strip()}")
        silenced = SILENCED.search(line)
        if silenced and not re.search(r"[(#-]\s*\w+", silenced.group(2)):
            found.append(f"{name}:{number}: silenced without a reason: {line.strip()}")
    return found


def name_faults(name: str, tree: ast.Module) -> list[str]:
    found = [f"{name}: vague name"] if Path(name).stem in VAGUE_FILES else []
    classes = [node.name for node in walk(tree, ast.ClassDef)]
    return found + [f"{name}: class {each}" for each in classes if VAGUE_CLASS.search(each)]


def opening_faults(name: str, tree: ast.Module) -> list[str]:
    """Return docstrings that begin without a subject or a verb."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        f"{name}:{node.body[0].lineno}: {text.splitlines()[0]}"
        for node in walk(tree, *owners)
        if (text := ast.get_docstring(node)) and OPENING.match(text)
    ]


def thin_air_faults(name: str, tree: ast.Module) -> list[str]:
    """Calls of a clock or of chance; handing one on, also in a lambda, is what is wanted."""
    handed_on = {id(inner) for node in walk(tree, ast.Lambda) for inner in ast.walk(node)}
    return [
        f"{name}:{node.lineno}: {node.func.value.id}.{node.func.attr}()"
        for node in walk(tree, ast.Call)
        if id(node) not in handed_on
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.attr in THIN_AIR.get(node.func.value.id, set())
    ]


def global_faults(name: str, tree: ast.Module) -> list[str]:
    return [f"{name}:{node.lineno}: global" for node in walk(tree, ast.Global)]


def broad_faults(name: str, tree: ast.Module) -> list[str]:
    return [
        f"{name}:{node.lineno}: catches everything"
        for node in walk(tree, ast.ExceptHandler)
        if (node.type is None or getattr(node.type, "id", "") == "BaseException")
        and not isinstance(node.body[-1], ast.Raise)
    ]


def test_nothing_is_unfinished_or_silenced_without_a_reason(everything) -> None:
    assert_none(line for each in everything for line in word_faults(each.name, each.text))


def test_names_say_something(everything) -> None:
    assert_none(line for each in everything for line in name_faults(each.name, each.tree))


def test_docstrings_begin_with_a_subject_or_a_verb(everything) -> None:
    own = [each for each in everything if not each.name.startswith("tests/")]
    assert_none(
        (line for each in own for line in opening_faults(each.name, each.tree)),
        'begin with a verb or a subject: "Return ...", "A reservation of ..."',
    )


def test_clocks_and_chance_come_in_by_argument(product) -> None:
    pure = [each for each in product if each.name.startswith(("router/", "ledger/"))]
    assert_none(
        (line for each in pure for line in thin_air_faults(each.name, each.tree)),
        "take the instant, the id or the chance as an argument",
    )


def test_no_globals_and_no_bare_except(product) -> None:
    assert_none(line for each in product for line in global_faults(each.name, each.tree))
    assert_none(line for each in product for line in broad_faults(each.name, each.tree))


def test_no_committed_file_names_a_path_of_a_machine(root: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    found = []
    for name in filter(None, listed.split("\0")):
        path = root / name
        if path.exists() and path.suffix != ".lock":
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [f"{name}: {match}" for match in MACHINE.findall(text)]
    assert_none(found, "name a path below the repository, or make one in the test")


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (word_faults, "x = 1  # TO" + "DO later\n"),
        (word_faults, "x = 1  # no" + "qa: F401\n"),
        (word_faults, "raise Not" + "ImplementedError\n"),
    ],
)
def test_a_word_is_found(check, text: str) -> None:
    assert check("x.py", text)


def test_a_reason_is_enough() -> None:
    assert_none(word_faults("x.py", "x = 1  # no" + "qa: F401 - tests import it from here\n"))
    assert_none(word_faults("x.py", "x = 1  # no" + "qa: F401  (kept for the reader)\n"))


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (name_faults, "class ConnectionManager: ..."),
        (opening_faults, '"""What is left."""'),
        (opening_faults, 'class Budget:\n    """The same by day."""'),
        (opening_faults, 'async def read():\n    """Of a team."""'),
        (thin_air_faults, "import time\nnow = time.time()"),
        (thin_air_faults, "from datetime import datetime\nnow = datetime.now(UTC)"),
        (global_faults, "def f():\n    global x"),
        (broad_faults, "try:\n    f()\nexcept:\n    g()"),
    ],
)
def test_a_habit_is_found(check, text: str) -> None:
    assert check("ledger/x.py", ast.parse(text))


def test_handing_a_clock_on_is_allowed() -> None:
    for text in ("Writer(clock=time.time)", "Writer(now_us=lambda: time.time_ns() // 1000)"):
        assert_none(thin_air_faults("ledger/x.py", ast.parse(text)))
