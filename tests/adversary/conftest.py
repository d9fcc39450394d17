"""The modules `adversary_*` beside this file are no tests: here the tests find them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from adversary_world import AdversaryWorld


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[AdversaryWorld]:
    made = AdversaryWorld(tmp_path_factory.mktemp("adversary"))
    yield made
    made.close()
