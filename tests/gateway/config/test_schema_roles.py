import pytest
from pydantic import ValidationError

from gateway.config.schema_roles import RolesSection


def test_a_number_is_a_short_form() -> None:
    roles = RolesSection.model_validate({"prefill": 1, "decode": {"replicas": 3}})
    assert (roles.prefill.replicas, roles.decode.replicas) == (1, 3)
    assert (roles.started, roles.count) == (4, 4)
    attached = {"endpoints": ["http://10.0.0.1"], "replicas": 1}
    roles = RolesSection.model_validate({"prefill": attached, "decode": 1})
    assert (roles.started, roles.count, roles.prefill.count) == (2, 3, 2)


@pytest.mark.parametrize(
    "wrong",
    [{"prefill": -1}, {"prefill": True}, {"decode": "two"}, {"lease_s": 1}, {"gb_per_s": 0},
     {"side_port": 70_000}, {"kv_bytes_per_token": 0}, {"encode": 1}],
)  # fmt: skip
def test_what_is_no_role_is_refused(wrong) -> None:
    with pytest.raises(ValidationError):
        RolesSection.model_validate(wrong)
