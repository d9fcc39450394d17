"""Where the dashboard listens and who may look, as the configuration says it."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_dashboard import DashboardSection


def test_by_default_it_is_this_machines_alone() -> None:
    usual = DashboardSection()
    assert (usual.host, usual.access_file, usual.reader_url_env) == ("127.0.0.1", None, None)
    assert not usual.enabled


@pytest.mark.parametrize("text", [{"access_file": ""}, {"acces_file": "a.toml"}, {"port": 65536}])
def test_what_cannot_be_is_refused(text: dict) -> None:
    with pytest.raises(ValidationError):
        DashboardSection.model_validate(text)
