"""A lane tells of a test that passed in one message, and of every other as ever."""

import pytest

from deploy.lane_reports import MANY, LaneReports, understand


class Channel:
    def __init__(self) -> None:
        self.sent: list[tuple[str, dict]] = []

    def send(self, name: str, **how: object) -> None:
        self.sent.append((name, how))


class Node:
    def __init__(self) -> None:
        self.seen: list[tuple[str, dict]] = []

    def process_from_remote(self, event: tuple) -> None:
        self.seen.append(event)


def report(when: str, outcome: str = "passed", **more: object) -> dict:
    return {"data": {"when": when, "outcome": outcome, "keywords": {"a": 1}, **more}}


def tell(channel: Channel, *reports: dict, tells_phases: bool = False) -> None:
    lane = LaneReports(channel.send, tells_phases=tells_phases)
    lane.sendevent("logstart", nodeid="a", location=())
    for each_report in reports:
        lane.sendevent("testreport", **each_report)
    lane.sendevent("logfinish", nodeid="a", location=())
    lane.sendevent("runtest_protocol_complete", item_index=3, duration=0.1)


def heard(channel: Channel) -> list[tuple[str, dict]]:
    """What the run makes of it."""
    node = Node()
    understand(node)
    for event in channel.sent:
        node.process_from_remote(event)
    return node.seen


@pytest.fixture
def channel() -> Channel:
    return Channel()


DONE = ("runtest_protocol_complete", {"item_index": 3, "duration": 0.1})


def test_a_test_that_passed_is_one_message(channel: Channel) -> None:
    tell(channel, report("setup"), report("call"), report("teardown"))
    assert [name for name, _ in channel.sent] == [MANY]
    call = {"when": "call", "outcome": "passed", "keywords": {}}
    assert heard(channel) == [("testreport", {"data": call}), DONE]


@pytest.mark.parametrize(
    "odd",
    [
        report("setup", "failed"),
        report("call", "failed"),
        report("teardown", "failed"),
        report("setup", "skipped"),
        report("call", "skipped", wasxfail="why"),
        report("call", "passed", wasxfail="why"),
    ],
    ids=lambda odd: "-".join(map(str, odd["data"].values())),
)
def test_what_did_not_just_pass_is_told_whole_and_in_its_place(channel: Channel, odd: dict) -> None:
    passed = [report(when) for when in ("setup", "call", "teardown")]
    tell(
        channel, *[odd if each["data"]["when"] == odd["data"]["when"] else each for each in passed]
    )
    told = [how["data"] for name, how in heard(channel) if name == "testreport"]
    assert odd["data"] in told
    order = [data["when"] for data in told]
    assert order == sorted(order, key=["setup", "call", "teardown"].index)
    assert heard(channel)[-1] == DONE


def test_who_asks_how_long_each_phase_took_is_told_each(channel: Channel) -> None:
    tell(channel, report("setup"), report("call"), report("teardown"), tells_phases=True)
    told = [how["data"]["when"] for name, how in heard(channel) if name == "testreport"]
    assert told == ["setup", "call", "teardown"]


def test_other_news_is_not_kept_waiting(channel: Channel) -> None:
    lane = LaneReports(channel.send, tells_phases=False)
    lane.sendevent("workerready", workerinfo={})
    lane.sendevent("testreport", **report("call"))
    lane.sendevent("warning_recorded", when="runtest")
    assert [name for name, _ in heard(channel)] == ["workerready", "testreport", "warning_recorded"]
