"""Section of a pool that sizes itself: bounds, rent, and its actuator."""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from gateway.config.schema_policies import TimesSection
from gateway.config.sections import ConfigSection, Positive, Usd, Variable

BILLING_S = {"second": 1, "minute": 60, "hour": 3600, "spot": 1}  # billing units
Size = Annotated[int, Field(ge=0, le=64)]


class ActuatorSection(ConfigSection):
    """Actuator that starts, stops and lists engines. Engine i of the pool is its place i."""

    kind: Literal["supervisor", "kubernetes", "keda", "command"] = Field(
        "supervisor",
        description="what acts: `supervisor` for `replicas` of this machine, `kubernetes` for the "
        "scale of a workload, `keda` for one whose scale KEDA sets (it asks `server.keda_port`), "
        "`command` for a program of yours",
    )
    argv: tuple[str, ...] = Field(
        (),
        description="of `command`: program and its words, no shell; `start TOKEN PLACE`, "
        "`stop TOKEN PLACE` or `list POOL` follow",
    )
    env: tuple[Variable, ...] = Field(
        (),
        description="of `command`: variables that the program may see beside PATH, HOME and the "
        "like",
    )
    workload: Literal["Deployment", "StatefulSet", "LeaderWorkerSet"] = Field(
        "StatefulSet", description="of `kubernetes` and `keda`: kind of the object that is scaled"
    )
    name: str | None = Field(None, description="of `kubernetes` and `keda`: name of the object")
    namespace: str | None = Field(
        None,
        description="of `kubernetes` and `keda`: namespace of the object; default: the gateway's "
        "own",
    )
    timeout_s: Annotated[float, Field(gt=0.0, le=300.0)] = Field(
        30.0, description="time after which an order or a list counts as failed"
    )

    @property
    def in_cluster(self) -> bool:
        """Return whether it scales a Kubernetes workload, by itself or through KEDA."""
        return self.kind in ("kubernetes", "keda")


class ScaleSection(ConfigSection):
    """Automatic number of a pool's engines, chosen by their earnings."""

    by: Literal["dollars"] = Field(
        "dollars", description="what decides: dollars that an engine earns beside its rent"
    )
    mode: Literal["advise", "act"] = Field(
        "advise",
        description="`advise`: plans are made, scored and shown; `act`: engines are started and "
        "stopped",
    )
    min: Size = Field(0, description="least number of engines")
    max: Size = Field(description="largest number of engines")
    rent_usd_per_hour: Usd | None = Field(
        None,
        description="rent of one engine; default: `gpu.count` times `gpu.usd_per_hour`",
    )
    billing: Literal["second", "minute", "hour", "spot"] = Field(
        "second",
        description="unit in which rent is billed; a unit that has begun is paid. `spot`: by the "
        "second, and the owner may take an engine away",
    )
    interruptions_per_day: Annotated[float, Field(ge=0.0, le=1440.0)] = Field(
        0.0, description="of `billing: spot`: how often a day an engine is taken away, on the mean"
    )
    least_s: Annotated[int, Field(ge=0, le=31_536_000)] = Field(
        60, description="least time that is billed for a start"
    )
    start_s: Positive = Field(180.0, description="time from asking for an engine until it serves")
    give_up_s: Positive = Field(
        1800.0,
        description="time after which an engine that does not serve is stopped and named",
    )
    reserved: Size = Field(
        0, description="engines that are paid for in any case; they are never stopped"
    )
    spare: Size = Field(
        1, description="engines beyond what traffic needs that may not leave own engines"
    )
    limit_usd_per_day: Usd | None = Field(
        None, description="rent of a day (in the organisation's zone) beyond which none is started"
    )
    quiet: tuple[TimesSection, ...] = Field(
        (), description="times in which no engine is started or stopped"
    )
    look_s: Annotated[float, Field(gt=0.0, le=600.0)] = Field(
        10.0, description="seconds between two plans"
    )
    act_unscored: bool = Field(
        default=False,
        description="whether `mode: act` may begin before advice was scored for a day, or although "
        "it would have lost money",
    )
    actuator: ActuatorSection = ActuatorSection()

    @property
    def unit_s(self) -> int:
        return BILLING_S[self.billing]

    def rent(self, gpus: int, usd_per_hour: Decimal | None) -> Decimal | None:
        """Return the rent of one engine per hour in dollars; `None` while no rate is known."""
        if self.rent_usd_per_hour is not None:
            return self.rent_usd_per_hour
        return None if usd_per_hour is None else gpus * usd_per_hour
