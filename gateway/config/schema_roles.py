"""Section `roles` of a pool: engines that only prefill, and engines that only decode.

They are added to the pool's other replicas (`engine.replicas`, `engine.endpoints`). A number is
short for engines that `serve` starts: `prefill: 1`.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from backends.engine.kvtransfer import GB_PER_S, SETUP_S
from gateway.config.sections import ConfigSection, Positive, Usd


class EngineRoleSection(ConfigSection):
    replicas: int = Field(0, ge=0, le=64, description="engines in this role, started by `serve`")
    endpoints: tuple[str, ...] = Field(
        (), description="base URLs of engines in this role that already run, on private addresses"
    )
    prefill_budget_tokens: int | None = Field(
        None, ge=1, description="tokens in one step; default: 8192 for `prefill`, else the pool's"
    )
    bid_price_usd_per_s: Usd | None = Field(
        None, description="fixed price of one second of these engines; default: the pool's"
    )

    @property
    def count(self) -> int:
        return self.replicas + len(self.endpoints)


def _with_count(value: Any) -> Any:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return {"replicas": value} if is_count else value


_Count = Annotated[int, Field(ge=0, le=64)]
EngineRole = Annotated[
    EngineRoleSection,
    BeforeValidator(_with_count, json_schema_input_type=EngineRoleSection | _Count),
]


class RolesSection(ConfigSection):
    prefill: EngineRole = EngineRoleSection()
    decode: EngineRole = EngineRoleSection()
    prefill_answers: bool = Field(
        False,
        description="`prefill` engines also answer requests whose promise they keep; else only"
        " where no other engine of the pool can",
    )
    whole_budget_tokens: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (), description="tokens in one step of each of `engine.replicas`, in order: unlike sizes"
    )
    gb_per_s: Positive = Field(
        GB_PER_S, description="bandwidth of one transfer of KV, until transfers are measured"
    )
    setup_ms: Annotated[float, Field(ge=0.0)] = Field(
        1e3 * SETUP_S,
        description="time that each transfer takes beside its bytes, until it is measured",
    )
    kv_bytes_per_token: int | None = Field(
        None, ge=1, description="KV of one token; default: worked out from `engine.model`"
    )
    lease_s: Annotated[int, Field(ge=6, le=3600)] = Field(
        30, description="time after which KV that no engine fetched is freed where it was made"
    )
    side_host: str = Field(
        "127.0.0.1", description="private address on which started engines offer their KV"
    )
    side_port: int = Field(
        5600, ge=0, le=65535, description="first port on which started engines offer their KV"
    )

    @property
    def started(self) -> int:
        return self.prefill.replicas + self.decode.replicas

    @property
    def count(self) -> int:
        return self.prefill.count + self.decode.count
