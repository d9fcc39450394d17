"""An identity provider in a process of its own: `python issuer.py` prints its port.

It has what such a one has to the outside (discovery, keys, a token endpoint's signatures by RSA and
EC) and, below `/_`, what a test turns: `sign`, `rotate`, `set` (how documents go wrong), `asked`.
"""

import hmac
import json
import sys
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jws
from joserfc.jwk import ECKey, RSAKey
from joserfc.util import urlsafe_b64encode

ROUNDS = {"rsa": lambda name: RSAKey.generate_key(2048, {"kid": name}),
          "ec": lambda name: ECKey.generate_key("P-256", {"kid": name})}  # fmt: skip


class House:
    def __init__(self) -> None:
        self.url, self.asked, self.wrong = "", {"discovery": 0, "keys": 0}, {}
        self.rounds = 0
        self.keys: dict[str, Any] = {}
        self.stranger = RSAKey.generate_key(2048, {"kid": "rsa-1"})
        warnings.simplefilter("ignore")  # one of 1,024 bits, to be refused
        self.short = RSAKey.generate_key(1024, {"kid": "short"})
        self.rotate()

    def rotate(self) -> None:
        self.rounds += 1
        self.keys = {kind: make(f"{kind}-{self.rounds}") for kind, make in ROUNDS.items()}

    def public(self) -> dict[str, Any]:
        keys = [key.as_dict(private=False) for key in self.keys.values()]
        keys += [{"kty": "oct", "kid": "oct", "k": "c2VjcmV0"}, {"kty": "quantum", "kid": "q"}, {}]
        return {"keys": [*keys, self.short.as_dict(private=False)]}

    def discovery(self) -> dict[str, Any]:
        said = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        return said | self.wrong.get("discovery", {})

    def sign(self, wanted: dict[str, Any]) -> str:
        """`by`: rsa, ec, stranger, short, or `public`: an HMAC with the public key's text."""
        by, payload = wanted.get("by", "rsa"), json.dumps(wanted["claims"])
        if by == "public":
            pem = self.keys["rsa"].as_pem(private=False)
            header = {"alg": "HS256", "kid": self.keys["rsa"].kid} | wanted.get("header", {})
            words = [urlsafe_b64encode(item.encode()) for item in (json.dumps(header), payload)]
            mac = hmac.digest(pem, b".".join(words), "sha256")
            return b".".join([*words, urlsafe_b64encode(mac)]).decode()
        key = {"stranger": self.stranger, "short": self.short}.get(by) or self.keys[by]
        alg = "ES256" if by == "ec" else "RS256"
        header = {"alg": alg, "kid": key.kid, "typ": "JWT"} | wanted.get("header", {})
        return jws.serialize_compact(header, payload, key, [header["alg"]])


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        house = self.server.house
        if self.path == "/_asked":
            return self.tell(house.asked)
        kind = {"/keys": "keys", "/.well-known/openid-configuration": "discovery"}.get(self.path)
        if kind is None:
            return self.tell({}, 404)
        house.asked[kind] += 1
        if kind == house.wrong.get("large"):
            return self.tell({"keys": [], "padding": "x" * 1_000_000})
        if kind == house.wrong.get("moved"):
            return self.tell({}, 302, location=f"{house.url}/keys")
        if kind == house.wrong.get("status"):
            return self.tell({}, 500)
        return self.tell(house.public() if kind == "keys" else house.discovery())

    def do_POST(self) -> None:
        house = self.server.house
        wanted = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        if self.path == "/_rotate":
            house.rotate()
        elif self.path == "/_set":
            house.wrong = wanted
        elif self.path == "/_sign":
            return self.tell({"token": house.sign(wanted)})
        return self.tell({})

    def tell(self, document: Any, status: int = 200, **headers: str) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.house = House()
    port = server.server_address[1]
    server.house.url = f"http://127.0.0.1:{port}"
    print(port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
