"""The scale subresource against a server that keeps it as the API server does."""

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gateway.config.schema_scale import ActuatorSection
from gateway.scaling.actuator import ActuatorError, ListedInstance
from gateway.scaling.kubernetes_actuator import RESOURCES, ClusterAccess, KubernetesActuator


class ScaleServer(ThreadingHTTPServer):
    """Keeps one Scale with optimistic locking, and refuses what has no token."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ScaleHandler)
        self.replicas, self.there, self.version = 1, 1, 7
        self.path, self.refuse, self.raced = "", 0, False
        self.odd: bytes | None = None  # the body of a read, whatever the Scale is
        self.trickles = False
        self.writes: list[int] = []

    def scale(self) -> dict[str, Any]:
        return {
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {"name": "vllm", "namespace": "ml", "resourceVersion": str(self.version)},
            "spec": {"replicas": self.replicas} if self.replicas else {},
            "status": {"replicas": self.there, "selector": "app=vllm"},
        }  # fmt: skip


class ScaleHandler(BaseHTTPRequestHandler):
    server: ScaleServer

    def do_GET(self) -> None:
        if self.server.trickles:
            self._trickle()
            return
        if self.server.odd is not None:
            self._send(200, self.server.odd)
            return
        self._answer(self._refused() or (200, self.server.scale()))

    def do_PUT(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        if server.raced:  # somebody else writes between its read and its write
            server.version, server.raced = server.version + 1, False
        if refused := self._refused():
            self._answer(refused)
        elif body["metadata"]["resourceVersion"] != str(server.version):
            self._answer((409, {"kind": "Status", "reason": "Conflict"}))
        else:
            server.replicas = server.there = body["spec"]["replicas"]
            server.version += 1
            server.writes.append(server.replicas)
            self._answer((200, server.scale()))

    def _refused(self) -> tuple[int, dict[str, Any]] | None:
        self.server.path = self.path
        if self.headers["authorization"] != "Bearer t-1":
            return 401, {"kind": "Status", "reason": "Unauthorized"}
        if self.server.refuse:
            return self.server.refuse, {"kind": "Status", "reason": "Forbidden"}
        return None

    def _answer(self, answer: tuple[int, dict[str, Any]]) -> None:
        self._send(answer[0], json.dumps(answer[1]).encode())

    def _send(self, status: int, text: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        with contextlib.suppress(OSError):  # who reads no more is gone
            self.wfile.write(text)

    def _trickle(self) -> None:
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while self.server.trickles:
                self.wfile.write(b" ")
                time.sleep(0.02)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server():
    found = ScaleServer()
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


@pytest.fixture
def actuator(server, tmp_path: Path):
    (tmp_path / "token").write_text("t-1\n")
    (tmp_path / "namespace").write_text("ml")
    access = ClusterAccess(f"http://127.0.0.1:{server.server_address[1]}", tmp_path)

    def make(**section) -> KubernetesActuator:
        values = {"kind": "kubernetes", "name": "vllm", "timeout_s": 2.0} | section
        return KubernetesActuator(ActuatorSection.model_validate(values), access)

    return make


@pytest.mark.parametrize("workload", sorted(RESOURCES))
def test_each_workload_is_found_at_its_own_path(server, actuator, workload):
    assert actuator(workload=workload).list() == [ListedInstance("vllm-0", None, 0)]
    group = "leaderworkerset.x-k8s.io" if workload == "LeaderWorkerSet" else "apps"
    path = f"/apis/{group}/v1/namespaces/ml/{workload.lower()}s/vllm/scale"
    assert server.path == path


def test_orders_are_idempotent_by_their_place(server, actuator):
    made = actuator()
    made.start("p.1.k", 1)
    made.start("p.1.k", 1)
    assert server.writes == [2]
    made.stop("p.1.k", 1)
    made.stop("p.1.k", 1)
    assert server.writes == [2, 1]
    made.stop("p.0.k", 0)
    made.start("p.0.k", 0)  # from none, which servers leave out of the document
    assert server.writes == [2, 1, 0, 1]


def test_orders_out_of_turn_are_refused(server, actuator):
    with pytest.raises(ActuatorError, match="has 1 replicas: 3 is not the next"):
        actuator().start("p.3.k", 3)
    server.replicas = 3
    with pytest.raises(ActuatorError, match="has 3 replicas: 1 is not the last"):
        actuator().stop("p.1.k", 1)
    assert server.writes == []


def test_a_pod_that_ends_is_still_listed(server, actuator):
    server.replicas, server.there = 1, 3
    assert [item.place for item in actuator().list()] == [0, 1, 2]


def test_another_writer_in_between_makes_it_fail_and_changes_nothing(server, actuator):
    server.raced = True
    with pytest.raises(ActuatorError, match="PUT of the scale of vllm: HTTP 409 Conflict"):
        actuator().start("p.1.k", 1)
    assert server.writes == []
    actuator().start("p.1.k", 1)
    assert server.writes == [2]


def test_what_the_server_refuses_and_what_does_not_answer_is_said(server, actuator, tmp_path):
    server.refuse = 403
    with pytest.raises(ActuatorError, match="HTTP 403 Forbidden"):
        actuator().list()
    server.refuse = 0
    (tmp_path / "token").write_text("old")
    with pytest.raises(ActuatorError, match="HTTP 401 Unauthorized"):
        actuator().list()
    (tmp_path / "token").unlink()
    with pytest.raises(ActuatorError, match="token: No such file"):
        actuator().list()
    (tmp_path / "token").write_text("t-1")
    access = ClusterAccess("http://127.0.0.1:9", tmp_path)
    section = ActuatorSection(kind="kubernetes", name="vllm", timeout_s=1.0)
    with pytest.raises(ActuatorError, match="did not answer: ConnectError"):
        KubernetesActuator(section, access).list()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"<html>proxy</html>", "did not return JSON"),
        (b"[" * 200_000, "did not return JSON"),
        (b'{"kind":"Status","status":"Success"}', "did not return a Scale"),
        (b'{"spec":{"replicas":"3"}}', "without a number of replicas"),
        (b'{"spec":{"replicas":-1}}', "without a number of replicas"),
        (b'{"spec":{"replicas":1e400}}', "without a number of replicas"),
        (b" " * 1_100_000, "has more than 1048576 bytes"),
    ],
)
def test_an_answer_that_is_no_scale_is_said_and_lists_nothing(server, actuator, text, said):
    server.odd = text
    with pytest.raises(ActuatorError, match=said):
        actuator().list()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b'{"spec":{},"status":null}', 0),
        (b'{"apiVersion":"autoscaling/v2","spec":{"replicas":2},"status":{}}', 2),
        (b'{"spec":{"replicas":1,"more":[]},"status":{"replicas":"2","new":1}}', 1),
    ],
)
def test_members_of_other_versions_are_no_fault(server, actuator, text, count):
    server.odd = text
    assert len(actuator().list()) == count


@pytest.mark.parametrize("status", [307, 404, 429, 500, 503])
def test_whatever_is_refused_leaves_engines_as_they_are(server, actuator, status):
    server.refuse = status
    for order in (actuator().list, lambda: actuator().start("p.1.k", 1)):
        with pytest.raises(ActuatorError, match=f"HTTP {status}"):
            order()
    assert server.writes == []


def test_an_answer_without_an_end_is_given_up(server, actuator):
    server.trickles = True
    try:
        with pytest.raises(ActuatorError, match="did not end within 1 s"):
            actuator(timeout_s=1.0).list()
    finally:
        server.trickles = False


@pytest.mark.parametrize("token", [b"caf\xc3\xa9", b"\xff\xfe"])
def test_a_token_that_is_none_is_said(actuator, tmp_path, token):
    (tmp_path / "token").write_bytes(token)
    with pytest.raises(ActuatorError, match=r"UnicodeEncodeError|this is not text"):
        actuator().list()


def test_outside_of_a_pod_there_is_no_access():
    with pytest.raises(ActuatorError, match="this is not a pod"):
        ClusterAccess.from_environ({})
    inside = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert ClusterAccess.from_environ(inside).url == "https://[fd00::1]:443"
