"""What a verb refuses is told by its kind, with the member at fault."""

from gateway.control.admin.refusals import is_refused, request_error_of
from gateway.control.admin.verb import OperationRefused
from gateway.control.override_changes import OverrideError
from gateway.control.policy_changes import PolicyConflict


def test_a_verbs_own_errors_have_a_kind_and_end_in_one_point() -> None:
    told = request_error_of(OperationRefused("no such thing.", kind="no_route", param="engine"))
    assert (told.row.status, told.param, told.message) == (404, "engine", "No such thing.")
    assert request_error_of(PolicyConflict("look again")).row.code == "policies_moved"
    assert request_error_of(OverrideError("no target")).message == "No target."


def test_a_name_at_the_head_of_a_sentence_is_not_changed() -> None:
    for said in ("pool:a/0 is not disabled", "`chat` has no target", "gpt-4o is priced"):
        assert request_error_of(OverrideError(said)).message == f"{said}."


def test_a_wait_that_no_sdk_sits_through_is_not_tried_again() -> None:
    soon = request_error_of(OperationRefused("x", kind="rate", retry_after_s=30.0))
    assert (soon.retry_after_s, soon.retry) == (30.0, None)
    late = request_error_of(OperationRefused("x", kind="rate", retry_after_s=3600.0))
    assert (late.retry_after_s, late.retry) == (3600.0, False)


def test_any_other_error_is_none_of_theirs() -> None:
    assert request_error_of(ValueError("a fault of ours")) is None
    assert not is_refused(ValueError("a fault of ours"))
    assert is_refused(OperationRefused("x"))
