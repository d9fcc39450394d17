import pytest, sys
sys.path.insert(0, "tests/sdk")
from test_openapi import examined, with_key
pytestmark = pytest.mark.part("schemathesis")
def test_edit(gateway, tmp_path):
    run = examined(gateway, tmp_path, *with_key(gateway), "--seed", "1", "--phases", "examples,coverage", "--include-path", "/v1/images/edits", "--include-path", "/v1/images/generations")
    assert run.returncode == 0, run.stdout[-4000:]
