"""The tasks of engines: which one a pool's kinds come to, and what it is asked first."""

from typing import get_args

import pytest

from backends.engine.tasks import TASKS, TaskName, task_of
from router.request_kinds import KIND_TRAITS, RequestKind


@pytest.mark.parametrize(
    ("serves", "kind"),
    [
        (("chat", "completion"), "generate"),
        (("embedding",), "embedding"),
        (("rerank", "embedding"), "embedding"),
        (("rerank",), "rerank"),
        (("transcription",), "transcription"),
        (("transcription", "chat"), "generate"),
        ((), "generate"),
    ],
)
def test_the_endpoints_say_what_an_engine_is_started_as(serves, kind):
    assert task_of(serves) == kind


def test_every_task_has_its_entry() -> None:
    assert tuple(TASKS) == get_args(TaskName)


def test_what_decodes_is_measured_by_its_steps_and_all_else_by_reading() -> None:
    for task in TASKS.values():
        decoded = {KIND_TRAITS[RequestKind(word)].decoded for word in task.serves}
        assert decoded == {task.probe is None}


def test_longer_questions_have_more_in_them() -> None:
    for task in TASKS.values():
        if task.probe is not None:
            sizes = [len(repr(task.probe.question("m", size))) for size in task.probe.sizes]
            assert sizes == sorted(set(sizes))
