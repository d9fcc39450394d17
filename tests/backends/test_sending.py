"""What has left is stated, and what nobody stated is unknown."""

import httpcore
import pytest

from backends.errors import InvalidResponse, UpstreamUnreachable
from backends.sending import Transmission


@pytest.mark.parametrize(
    ("begun", "possible", "sent"), [(None, True, True), (False, False, False), (True, True, True)]
)
def test_unknown_counts_as_sent(begun, possible, sent) -> None:
    transmission = Transmission()
    transmission.begun = begun
    assert transmission.possible is possible
    assert transmission.judge(InvalidResponse("no")).billable is sent


def test_where_nothing_is_stated_a_kind_speaks_for_itself() -> None:
    assert not Transmission().judge(UpstreamUnreachable("no")).billable
    known = Transmission()
    known.begun = True
    assert known.judge(UpstreamUnreachable("behind a connection that died")).billable


def test_what_had_left_stays_so() -> None:
    transmission = Transmission()
    transmission.begun = True
    transmission.takes()
    assert transmission.begun is True


CONNECTS = ("connection.connect_tcp.started", {})
HEAD = ("http11.send_request_headers.started", {})
UNWRITABLE = ("http11.send_request_headers.failed", {"exception": httpcore.LocalProtocolError()})
CUT = ("http11.send_request_headers.failed", {"exception": httpcore.WriteError()})


@pytest.mark.parametrize(
    ("events", "begun"),
    [
        ([CONNECTS], False),
        ([CONNECTS, HEAD], True),
        ([CONNECTS, HEAD, CUT], True),
        ([CONNECTS, HEAD, UNWRITABLE], False),
        ([CONNECTS, HEAD, CONNECTS, HEAD, UNWRITABLE], True),
        ([], None),
    ],
)
async def test_a_request_of_httpcore_is_followed(events, begun) -> None:
    transmission = Transmission()
    for event, told in events:
        await transmission.trace(event, told)
    assert transmission.begun is begun


@pytest.mark.parametrize(
    ("bodies", "ignored"),
    [
        ([b"{}"], ("seed", "tools.strict")),
        ([b'{"strict":true}'], ("seed",)),
        ([b'{"name":"m"}', b'{"strict":true}'], ("seed",)),
        ([b'{"strict":true}', b'{"name":"m"}'], ("seed",)),
    ],
)
def test_what_any_body_has_is_not_ignored(bodies, ignored) -> None:
    """Red before for the third: a question about the model came first."""
    transmission = Transmission()
    transmission.ignored = ("seed",)
    transmission.expected = {b'"strict"': "tools.strict"}
    for body in bodies:
        transmission.compare_body(body)
    assert transmission.ignored == ignored
