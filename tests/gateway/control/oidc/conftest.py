"""An identity provider that runs, and who signs in there."""

import base64
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.control.oidc.tokens import TokenRequirements

AUDIENCE = "breakeven-cli"
ALGORITHMS = ("RS256", "ES256")


class Provider:
    def __init__(self) -> None:
        program = str(Path(__file__).with_name("issuer.py"))
        self._process = subprocess.Popen(
            [sys.executable, program], stdout=subprocess.PIPE, text=True
        )
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        self.client = httpx.Client(base_url=self.url, trust_env=False, timeout=20)

    @property
    def rule(self) -> TokenRequirements:
        return TokenRequirements(self.url, (AUDIENCE,), ALGORITHMS)

    def claims(self, **changes: Any) -> dict[str, Any]:
        """A change to None leaves the claim out."""
        now_s = int(time.time())
        said = {
            "iss": self.url, "aud": AUDIENCE, "sub": "7", "iat": now_s, "exp": now_s + 600,
            "email": "ada@example.com", "email_verified": True, "role": "admin",
        }  # fmt: skip
        return {name: value for name, value in (said | changes).items() if value is not None}

    def token(self, by: str = "rsa", header: dict[str, Any] | None = None, **changes: Any) -> str:
        wanted = {"by": by, "claims": self.claims(**changes), "header": header or {}}
        return self.client.post("/_sign", json=wanted).json()["token"]

    def unsigned(self, alg: str = "none", kid: str = "rsa-1") -> str:
        parts = ({"alg": alg, "kid": kid}, self.claims())
        words = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts]
        return b".".join([*(word.rstrip(b"=") for word in words), b""]).decode()

    def set(self, **wrong: Any) -> None:
        self.client.post("/_set", json=wrong)

    def rotate(self) -> None:
        self.client.post("/_rotate", json={})

    @property
    def asked(self) -> dict[str, int]:
        return self.client.get("/_asked").json()

    def keys(self) -> dict[str, Any]:
        return self.client.get("/keys").json()

    def stop(self) -> None:
        """Once more does no harm."""
        self.client.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture
def make_provider() -> Iterator[Callable[[], Provider]]:
    """One of one's own, for who rotates its keys or ends it."""
    made: list[Provider] = []

    def make() -> Provider:
        made.append(Provider())
        return made[-1]

    yield make
    for made_value in made:
        made_value.stop()


@pytest.fixture(scope="package")
def provider() -> Iterator[Provider]:
    """One that nobody changes."""
    found = Provider()
    yield found
    found.stop()
