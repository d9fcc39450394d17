"""Actuator for a Kubernetes workload, through its `scale` subresource.

It uses the pod's own credentials. Engine i is replica i, so places are filled from the lowest and
emptied from the highest. Orders are idempotent by place: `start` of place 2 turns two replicas into
three, and leaves three unchanged. A write names the version that was read, so one of two writers is
refused. The pod's role needs `get` and `update` on `RESOURCE/scale` of this object.
"""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec

from gateway.config.schema_scale import ActuatorSection
from gateway.scaling.actuator import ActuatorError, ListedInstance

ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
RESOURCES = {
    "Deployment": "apis/apps/v1/namespaces/{}/deployments/{}/scale",
    "StatefulSet": "apis/apps/v1/namespaces/{}/statefulsets/{}/scale",
    "LeaderWorkerSet": "apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets/{}/scale",
}
LONGEST = 1024 * 1024


class ClusterAccess(msgspec.Struct, frozen=True):
    """Address of the API server, and the folder with token, namespace and CA."""

    url: str
    account: Path = ACCOUNT_DIR

    @classmethod
    def from_environ(cls, environ: Any) -> "ClusterAccess":
        """Return the access of this pod. Raises `ActuatorError` outside of a pod."""
        host, port = (environ.get(f"KUBERNETES_SERVICE_{word}") for word in ("HOST", "PORT"))
        if not host or not port:
            raise ActuatorError("this is not a pod: KUBERNETES_SERVICE_HOST is not set")
        shown = f"[{host}]" if ":" in host else host
        return cls(f"https://{shown}:{port}")

    def read(self, name: str) -> str:
        """Read a file of the service account; not cached, because tokens rotate."""
        try:
            return (self.account / name).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ActuatorError(f"{self.account / name}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ActuatorError(f"{self.account / name}: this is not text") from None


class KubernetesActuator:
    """Implementation of `FleetActuator` with the scale of one workload."""

    ordered = True
    adopts = True

    def __init__(self, section: ActuatorSection, access: ClusterAccess) -> None:
        self._section, self._access = section, access

    def start(self, token: str, place: int) -> None:
        del token  # replicas have no tags, only places
        scale = self._read()
        count = _replicas(scale)
        if count == place:
            self._write(scale, place + 1)
        elif count < place:
            raise ActuatorError(f"{self._name} has {count} replicas: {place} is not the next")

    def stop(self, token: str, place: int) -> None:
        del token  # as above
        scale = self._read()
        count = _replicas(scale)
        if count == place + 1:
            self._write(scale, place)
        elif count > place + 1:
            raise ActuatorError(f"{self._name} has {count} replicas: {place} is not the last")

    def list(self) -> list[ListedInstance]:
        """Return wanted or existing replicas: a terminating pod still costs rent."""
        scale = self._read()
        status = scale.get("status")
        there = status.get("replicas", 0) if isinstance(status, dict) else 0
        count = max(_replicas(scale), there if isinstance(there, int) else 0)
        return [ListedInstance(f"{self._name}-{place}", None, place) for place in range(count)]

    @property
    def _name(self) -> str:
        return self._section.name or ""

    @property
    def _limit_s(self) -> float:
        return self._section.timeout_s

    def _path(self) -> str:
        namespace = self._section.namespace or self._access.read("namespace")
        return RESOURCES[self._section.workload].format(namespace, self._name)

    def _read(self) -> dict[str, Any]:
        return self._ask("GET", None)

    def _write(self, scale: dict[str, Any], replicas: int) -> None:
        """Replace the scale that was read; fails (409) after another writer's change."""
        spec = scale["spec"] | {"replicas": replicas}
        self._ask("PUT", scale | {"spec": spec})

    def _ask(self, method: str, body: dict[str, Any] | None) -> dict[str, Any]:
        answer, said = self._exchange(method, body)
        if answer.status_code != httpx.codes.OK:
            words = f"{method} of the scale of {self._name}: HTTP {answer.status_code}"
            raise ActuatorError(f"{words} {_reason(said)}".rstrip())
        return _scale_of(said)

    def _exchange(self, method: str, body: dict[str, Any] | None) -> tuple[httpx.Response, bytes]:
        """Send one request to the API server, with limited time and size of the answer."""
        secure = self._access.url.startswith("https:")
        verify: Any = str(self._access.account / "ca.crt") if secure else False
        path, until_s = f"{self._access.url}/{self._path()}", time.monotonic() + self._limit_s
        try:
            bearer = f"Bearer {self._access.read('token')}".encode("ascii")
            with (
                httpx.Client(verify=verify, timeout=self._limit_s, trust_env=False) as client,
                client.stream(
                    method, path, json=body, headers=[(b"authorization", bearer)]
                ) as answer,
            ):
                said = b""
                for part in answer.iter_bytes():
                    said += part
                    if len(said) > LONGEST:
                        words = f"the scale of {self._name} has more than {LONGEST} bytes"
                        raise ActuatorError(words)
                    if time.monotonic() > until_s:
                        words = f"the API server's answer did not end within {self._limit_s:g} s"
                        raise ActuatorError(words)
                return answer, said
        except (httpx.HTTPError, OSError, UnicodeError) as error:
            words = f"the API server did not answer: {type(error).__name__}"
            raise ActuatorError(words) from None


def _scale_of(said: bytes) -> dict[str, Any]:
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        raise ActuatorError("the Kubernetes API server did not return JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("spec"), dict):
        raise ActuatorError("the Kubernetes API server did not return a Scale")
    return found


def _replicas(scale: dict[str, Any]) -> int:
    """Return the wanted replicas; some servers omit zero."""
    count = scale["spec"].get("replicas", 0)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ActuatorError(
            "the Kubernetes API server returned a Scale without a number of replicas"
        )
    return count


def _reason(said: bytes) -> str:
    """Return the API server's reason, such as `Conflict` or `Forbidden`."""
    try:
        document = json.loads(said)
    except (ValueError, RecursionError):
        return ""
    reason = document.get("reason") if isinstance(document, dict) else None
    return reason[:80] if isinstance(reason, str) else ""
