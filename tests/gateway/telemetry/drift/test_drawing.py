"""What a worker draws: of teams that agreed, and of nobody else; and nothing waits for it."""

import json
import random
import socket
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.config.settings import Settings
from gateway.telemetry.drift.drawing import LONGEST, SOCKET, SampleSender, open_drawing
from router.request_kinds import RequestKind

RULE = {"teams": ["search"], "model": "own", "baseline": "base", "key_env": "K", "share": 1.0}


@dataclass
class AskedAttempt:
    members: dict[str, bytes]
    kind: RequestKind = RequestKind.CHAT


@dataclass
class Identity:
    team_id: str = "search"


@dataclass
class Target:
    pool: str = "tiny"
    upstream_model: str = "tiny"


def settings(**changes: object) -> Settings:
    pools = {
        "tiny": {"engine": {}, "gpu": {"type": "CPU"}, "sampling": RULE | changes},
        "bare": {"engine": {}, "gpu": {"type": "CPU"}},
    }
    return Settings.model_validate({"pools": pools})


@pytest.fixture
def heard(tmp_path: Path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    listener.bind(str(tmp_path / SOCKET))

    def every() -> list[dict]:
        found = []
        try:
            while True:
                found.append(json.loads(listener.recv(1 << 18)))
        except BlockingIOError:
            return found

    yield every
    listener.close()


MESSAGES = b'[{"role": "user", "content": "Hello"}]'


@pytest.mark.parametrize(
    ("asked", "identity", "target", "drawn"),
    [
        (AskedAttempt({"messages": MESSAGES}), Identity(), Target(), 1),
        (AskedAttempt({"messages": MESSAGES}), Identity("other"), Target(), 0),
        (AskedAttempt({"messages": MESSAGES}), Identity(), Target("bare", "bare"), 0),
        (AskedAttempt({"messages": MESSAGES}), Identity(), Target(upstream_model="sql"), 0),
        (AskedAttempt({"messages": MESSAGES}, RequestKind.EMBEDDING), Identity(), Target(), 0),
        (AskedAttempt({"prompt": b'"x"'}), Identity(), Target(), 0),
        (AskedAttempt({"messages": b" " * (LONGEST + 1)}), Identity(), Target(), 0),
    ],
)
def test_who_is_drawn(tmp_path, heard, asked, identity, target, drawn):
    drawing = SampleSender(settings(), tmp_path, random.Random(1))
    drawing.offer(asked, identity, target)
    drawing.close()
    found = heard()
    assert len(found) == drawn
    if drawn:
        assert found == [{"pool": "tiny", "messages": json.loads(MESSAGES)}]


def test_a_share_is_a_share(tmp_path: Path, heard):
    drawing = SampleSender(settings(share=0.3), tmp_path, random.Random(7))
    drawn = 0
    for _ in range(1000):
        drawing.offer(AskedAttempt({"messages": MESSAGES}), Identity(), Target())
        drawn += len(heard())
    drawing.close()
    assert 250 < drawn < 350


def test_where_nobody_listens_or_too_many_wait_it_is_let_go(tmp_path: Path, heard):
    nowhere = SampleSender(settings(), tmp_path / "nowhere", random.Random(1))
    nowhere.offer(AskedAttempt({"messages": MESSAGES}), Identity(), Target())
    nowhere.close()
    drawing = SampleSender(settings(), tmp_path, random.Random(1))
    for _ in range(5000):  # the socket holds a few hundred; nobody reads meanwhile
        drawing.offer(AskedAttempt({"messages": MESSAGES}), Identity(), Target())
    drawing.close()
    assert 0 < len(heard()) < 5000


def test_where_no_pool_is_sampled_there_is_nothing(tmp_path: Path):
    plain = Settings.model_validate({"pools": {"a": {"engine": {}, "gpu": {"type": "CPU"}}}})
    assert open_drawing(plain, tmp_path) is None
    drawing = open_drawing(settings(), tmp_path)
    assert drawing is not None
    drawing.close()
