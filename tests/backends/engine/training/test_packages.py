"""Which installed packages a corpus may take: those whose metadata name a permissive licence."""

from pathlib import Path

import pytest

from backends.engine.training import packages

LICENCES = {
    "License-Expression: MIT": True,
    "License-Expression: Apache-2.0 OR BSD-2-Clause": True,
    "License: BSD-3-Clause": True,
    "Classifier: License :: OSI Approved :: Apache Software License": True,
    "License-Expression: MIT AND GPL-3.0-only": False,
    "License-Expression: LGPL-3.0-only": False,
    "License: MPL-2.0": False,
    "Classifier: License :: OSI Approved :: GNU General Public License (GPL)": False,
    "License: Proprietary": False,
    "Summary: nothing said": False,
}
SOURCE = '"""Reads what was written."""\n\n' + "def read(path):\n    return path.read_text()\n" * 20


@pytest.fixture
def folder(tmp_path: Path):
    def make(head: str, **files: str) -> Path:
        about = tmp_path / "thing-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: thing\nVersion: 1.0\n{head}\n"
        )
        listed = []
        for name, text in files.items():
            path = tmp_path / "thing" / name.replace("__", "/")
            path = path.with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            listed.append(f"{path.relative_to(tmp_path)},,")
        (about / "RECORD").write_text("\n".join(listed))
        return tmp_path

    return make


@pytest.mark.parametrize(("head", "taken"), LICENCES.items())
def test_only_permissive_licences_are_taken(folder, head, taken):
    found = list(packages.packages([folder(head, read=SOURCE)]))
    assert [package.name for package in found] == (["thing"] if taken else [])


def test_tests_tables_and_other_letters_are_left_out(folder):
    table = "ROWS = [\n" + "    (1, 2, 3, 4),\n" * 60 + "]\n"
    made = folder(
        "License: MIT", read=SOURCE, tests__read=SOURCE, table=table, tiny="x = 1\n",
        words=SOURCE + "# \u00fc\n",
    )  # fmt: skip
    (package,) = packages.packages([made])
    assert [path for path, _ in packages.texts(package)] == [f"{made.name}/thing/read.py"]
