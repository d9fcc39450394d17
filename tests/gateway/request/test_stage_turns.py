"""Why a target that was asked did not answer, for stages that wait for one cause."""

from backends.errors import BackendError
from gateway.request.stage_turns import cause_of_error
from router.stages import StageCause

OWN = {
    "too_long": StageCause.CONTEXT,
    "filtered": StageCause.CONTENT_POLICY,
    "declined": StageCause.ANY,
    "unsendable": StageCause.ANY,
    "overtaken": StageCause.ANY,
}


def test_every_error_has_a_cause_and_all_others_are_failures() -> None:
    kinds = BackendError.__subclasses__()
    found = {kind.kind: cause_of_error(kind("x")) for kind in kinds}
    assert found.keys() >= OWN.keys()
    assert found == {kind: OWN.get(kind, StageCause.FAILURE) for kind in found}
