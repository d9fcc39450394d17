"""KEDA as the hands: replicas become what the books order, and nobody else sets them."""

import json
import math
from pathlib import Path
from typing import Any

import grpc
import pytest

from deploy.upstream_server import UpstreamServer
from gateway.clock import Clock
from gateway.scaling import keda_messages as messages
from gateway.scaling.keda_actuator import KedaActuator
from gateway.scaling.keda_scaler import KedaScaler, serve_keda
from gateway.scaling.kubernetes_actuator import ClusterAccess
from gateway.scaling.ledger_orders import LedgerOrders
from gateway.scaling.pool_scaler import PoolScaler, ScalerPlace

ACTUATOR = {"kind": "keda", "name": "llama", "namespace": "ml"}


class Cluster(UpstreamServer):
    """A StatefulSet's scale, and the replicas that serve; it counts who writes."""

    def __init__(self) -> None:
        super().__init__()
        self.replicas, self.writes = 0, 0
        self.held: dict[int, int] = {}
        self.working: set[int] = set()
        self.cut = 0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.writes += scope["method"] != "GET"
        scale = {"spec": {"replicas": self.replicas}, "status": {"replicas": self.replicas}}
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": json.dumps(scale).encode()})

    def scale_to(self, count: int) -> None:
        self.cut += len({place for place in self.working if place >= count})
        self.replicas = count

    # What the gateway sees.

    def serving(self) -> frozenset[int]:
        return frozenset(range(self.replicas))

    def busy(self) -> frozenset[int]:
        return frozenset(self.working)

    def away(self) -> dict[int, int]:
        return dict(self.held)

    def keep_away(self, place: int, why: str) -> None:
        del why
        self.held.setdefault(place, 0)

    def let_in(self, place: int) -> None:
        self.held.pop(place, None)

    def paused(self) -> str | None:
        return None


class Keda:
    """Asks as KEDA does, and sets the replicas as its autoscaler would."""

    def __init__(self, port: int, cluster: Cluster) -> None:
        self.cluster = cluster
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.failures: list[str] = []

    def step(self) -> None:
        reference = messages.ScaledObjectRef(name="llama", namespace="ml")
        reference.scalerMetadata.add(key="pool", value="p")
        ask = self.channel.unary_unary(
            "/externalscaler.ExternalScaler/GetMetrics",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=messages.GetMetricsResponse.FromString,
        )
        try:
            answer = ask(messages.GetMetricsRequest(scaledObjectRef=reference), timeout=10)
        except grpc.RpcError as error:
            self.failures.append(error.details())  # it leaves the replicas as they are
            return
        (value,) = answer.metricValues
        self.cluster.scale_to(math.ceil(value.metricValueFloat))


@pytest.fixture
def cluster():
    with Cluster() as found:
        yield found


@pytest.fixture
def played(world, cluster, tmp_path: Path):
    """`played(mode="act")`: a world, and a KEDA; the world's steps size the cluster."""
    (tmp_path / "token").write_text("t")
    ended = []

    def make(**section: Any):
        found = world(**{"actuator": ACTUATOR, **section})
        access = ClusterAccess(f"http://127.0.0.1:{cluster.port}", tmp_path)
        place = ScalerPlace(
            ledger=found.ledger,
            probe=cluster,
            actuator=KedaActuator(found.setup.section.actuator, access),
            clock=Clock(now_s=lambda: found.now_us / 1e6, wall_us=lambda: found.now_us),
            holder="host:keda",
            planner=lambda _memory: found.planner,
            known_us=lambda: found.now_us,
        )
        found.scaler = PoolScaler(found.setup, place)
        orders = LedgerOrders(found.ledger, {"p": found.setup.acts})
        server, port = serve_keda(KedaScaler(orders), "127.0.0.1:0")
        ended.append(server)
        return found, Keda(port, cluster)

    yield make
    for server in ended:
        server.stop(None).wait()


def go(world, keda: Keda, times: int) -> Any:
    for _ in range(times):
        note = world.step(seconds=10)
        keda.step()
    return note


def test_replicas_follow_the_plan_and_no_stream_is_cut(played, cluster) -> None:
    world, keda = played()
    world.planner.wanted = 3
    note = go(world, keda, 4)
    assert (cluster.replicas, note.running) == (3, 3)
    cluster.working = {0, 2}
    world.planner.wanted = 1
    go(world, keda, 3)
    assert cluster.replicas == 3, "the last replica works, and those below it wait for it"
    cluster.working = {0}
    note = go(world, keda, 12)
    assert (cluster.replicas, note.running, cluster.cut) == (1, 1, 0)
    world.planner.wanted = 0
    cluster.working = set()
    note = go(world, keda, 10)
    assert (cluster.replicas, note.wanted) == (0, 0)
    assert cluster.writes == 0, "KEDA alone sets the scale"
    assert not any(note.findings.values())
    assert all(row.gone_us for row in world.rows().values())


def test_a_pool_that_only_advises_leaves_the_replicas_as_they_are(played, cluster) -> None:
    world, keda = played(mode="advise")
    cluster.replicas, world.planner.wanted = 2, 4
    go(world, keda, 4)
    assert cluster.replicas == 2
    assert set(keda.failures) == {"pool `p` only advises (`scale.mode`)"}


def test_what_nobody_knows_changes_nothing(played, cluster, tmp_path) -> None:
    world, keda = played()
    cluster.replicas = 2
    keda.step()
    assert (cluster.replicas, keda.failures) == (2, ["pool `p` has no plan yet"])
    world.planner.wanted = 2
    go(world, keda, 4)
    assert cluster.replicas == 2, "engines that ran before are adopted"
    world.ledger.dispose()
    (tmp_path / "ledger.db").rename(tmp_path / "gone.db")
    (tmp_path / "ledger.db").mkdir()
    keda.step()
    assert cluster.replicas == 2
    assert keda.failures[-1] == "the ledger cannot be reached"


def test_the_control_a_zero_in_place_of_an_error_would_stop_all(
    played, cluster, monkeypatch
) -> None:
    monkeypatch.setattr(LedgerOrders, "__call__", lambda *_: 0)
    _, keda = played(mode="advise")
    cluster.replicas = 2
    keda.step()
    assert cluster.replicas == 0
