"""Section `server`: listening address, size limits and timeouts."""

from typing import Annotated

from pydantic import Field, field_validator

from gateway.config.sections import ConfigSection, Origin, Positive, Variable
from gateway.http.member_rules import ALLOWABLE, DENIED, NEEDED


class TimeoutsSection(ConfigSection):
    connect_s: Positive = Field(5.0, description="time for TCP and TLS to an upstream")
    head_s: Positive = Field(
        120.0, description="time from a sent request to the answer's head, and to its first token"
    )
    whole_s: Positive = Field(
        600.0, description="time to the head of an answer in one piece, which comes at its end"
    )
    idle_s: Positive = Field(60.0, description="longest silence between two chunks of an answer")
    total_s: Positive = Field(900.0, description="time for one request with all its attempts")
    client_stall_s: Positive = Field(
        60.0, description="time for which a client may stop reading its answer"
    )
    receive_s: Positive = Field(
        8.0,
        description="time for a request's head, and for its body; each 16 KiB of it add a second",
    )
    keep_alive_s: Positive = Field(
        75.0,
        description="time for which an idle connection stays open; balancers keep theirs for 60",
    )
    drain_s: Positive = Field(
        30.0, description="time that open streams have to finish after SIGTERM"
    )
    unready_s: Annotated[float, Field(ge=0.0)] = Field(
        0.0,
        description="time after SIGTERM in which the gateway is unready and serves, for balancers",
    )


class ReplaySection(ConfigSection):
    enabled: bool = Field(False, description="whether answers are kept, encrypted, and sent again")
    key_env: Variable | None = Field(
        None, description="environment variable with the secret that encrypts them"
    )
    hours: Annotated[float, Field(gt=0.0, le=744.0)] = Field(
        24.0, description="hours for which an answer is kept, at most as long as its key stands"
    )
    max_bytes: int = Field(
        1024 * 1024,
        ge=1024,
        description="largest answer that is kept; repeating the request of a larger one gets 409",
    )
    total_bytes: int = Field(
        1024**3, ge=1024, description="approximate size of all kept answers in the database"
    )


class IdempotencySection(ConfigSection):
    hours: Annotated[float, Field(gt=0.0, le=744.0)] = Field(
        24.0, description="hours for which an `Idempotency-Key` stands for its first request"
    )
    replay: ReplaySection = ReplaySection()


class MembersSection(ConfigSection):
    allow: tuple[str, ...] = Field(
        (),
        description="members of request bodies that are left out or refused by default, and that "
        "pass on to every target",
    )
    refuse: tuple[str, ...] = Field(
        (), description="members of request bodies that get 400, whatever they say"
    )

    @field_validator("allow")
    @classmethod
    def _check_allowed(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in ALLOWABLE:
                raise ValueError(
                    f"`{name}` cannot be allowed: another setting controls it"
                    if name in DENIED
                    else f"`{name}` is always allowed: leave it out"
                )
        return names

    @field_validator("refuse")
    @classmethod
    def _check_refused(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in NEEDED.intersection(names):
            raise ValueError(f"`{name}` is required to read requests: leave it out of the list")
        return names


class SocketsSection(ConfigSection):
    idle_s: Positive = Field(
        600.0, description="time for which a WebSocket may ask for nothing; then it is closed"
    )
    total_s: Annotated[float, Field(gt=0.0, le=3600.0)] = Field(
        3600.0, description="time for which a WebSocket stays open; its answer is finished first"
    )
    memory_bytes: int = Field(
        256 * 1024 * 1024,
        ge=0,
        description="bytes that one worker keeps of its WebSockets' answers with `store: false`",
    )


class ServerSection(ConfigSection):
    host: str = Field("127.0.0.1", description="address the gateway listens on")
    port: int = Field(8080, ge=0, le=65535, description="port the gateway listens on")
    keda_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="port on which KEDA asks for the engines of pools (gRPC, `scale.actuator.kind: "
        "keda`); needs the extra `keda`, and is for the cluster's network alone",
    )
    workers: int = Field(1, ge=1, le=64, description="gateway worker processes on this host")
    body_limit_bytes: int = Field(
        10 * 1024 * 1024, ge=1024, description="largest accepted request body"
    )
    max_in_flight: int = Field(
        4096, ge=1, description="requests one worker works on at once; more get 503"
    )
    max_connections: int = Field(
        16_384,
        ge=1,
        description="connections of one worker, at most half of its open files; more get 503",
    )
    max_n: int = Field(8, ge=1, le=128, description="most answers of one request: `n` x prompts")
    picture_tokens: int = Field(
        5_000, ge=0, description="tokens that budgets hold for each picture or sound, beside bytes"
    )
    cors_origins: tuple[Origin, ...] = Field(
        (), description="web pages that may call `/v1`: `https://app.example.com`, or `*` for all"
    )
    members: MembersSection = MembersSection()
    idempotency: IdempotencySection = IdempotencySection()
    timeouts: TimeoutsSection = TimeoutsSection()
    sockets: SocketsSection = SocketsSection()
