"""Conversion of a pool's section to the values of planner, scoring and reconcile. No I/O."""

from dataclasses import dataclass

from gateway.config.aliases import logical_models
from gateway.config.schema_scale import ScaleSection
from gateway.config.settings import Settings
from gateway.policies.rules import weekly_hours
from gateway.scaling.reconcile import FleetRules
from gateway.scaling.scoring import ScoreTerms
from ledger.economics.scaling_score import InstanceRent
from ledger.money import PUSD_PER_USD
from router.scaling.plan import PoolTerms, RentTerms

US = 1_000_000
GRACE_US = 60 * US  # tolerance for lists that lack an engine or still have an ended one
FOLLOW_US = 3 * US  # until every worker has applied that an engine gets no requests


@dataclass(frozen=True, slots=True)
class PoolSetup:
    """Setup of one pool that sizes itself."""

    pool: str
    section: ScaleSection
    models: tuple[str, ...]
    places: int
    rent: InstanceRent
    drain_s: float
    timezone: str

    @property
    def acts(self) -> bool:
        return self.section.mode == "act"

    @property
    def limit_pusd(self) -> int | None:
        limit = self.section.limit_usd_per_day
        return None if limit is None else int(limit * PUSD_PER_USD)

    def pool_terms(self, start_s: float | None = None) -> PoolTerms:
        """Return the planner's terms; `start_s` is the measured start time, if known."""
        section, rent = self.section, self.rent
        return PoolTerms(
            pool=self.pool,
            rent=RentTerms(rent.pusd_per_hour, rent.unit_s, rent.least_s, section.reserved),
            start_s=section.start_s if start_s is None else start_s,
            drain_s=self.drain_s,
            least=section.min,
            most=section.max,
            internal_spare=section.spare,
            interruptions_per_hour=section.interruptions_per_day / 24,
        )

    def score_terms(self) -> ScoreTerms:
        return ScoreTerms(
            rent=self.rent,
            capacity_ppm=round(self.pool_terms().capacity * 1e6),
            most=max(self.section.max, self.places),
            fixed_engines=self.places,
            start_us=round(self.section.start_s * US),
        )

    def rules(self, *, ordered: bool, adopts: bool, can_start: int | None) -> FleetRules:
        section = self.section
        return FleetRules(
            least=section.min,
            most=section.max,
            give_up_us=round(section.give_up_s * US),
            grace_us=GRACE_US,
            drain_us=round(self.drain_s * US),
            follow_us=FOLLOW_US,
            can_start=can_start,
            ordered=ordered,
            adopts=adopts,
        )

    def is_quiet(self, now_us: int) -> bool:
        """Return whether no engine may be started or stopped at this time."""
        return any(weekly_hours(times).is_active(now_us) for times in self.section.quiet)


def pool_setups(settings: Settings) -> list[PoolSetup]:
    """Return the pools that size themselves, in the order of the configuration."""
    found = []
    for name, pool in settings.pools.items():
        section = pool.scale
        usd = None if section is None else section.rent(pool.gpu.count, pool.gpu.usd_per_hour)
        if section is None or usd is None:  # a rent is checked with the configuration
            continue
        models = [
            model for model, entry in logical_models(settings) if f"pool:{name}" in entry.reachable
        ]
        found.append(
            PoolSetup(
                pool=name,
                section=section,
                models=tuple(models),
                places=pool.engine.replicas + len(pool.engine.endpoints),
                rent=InstanceRent(int(usd * PUSD_PER_USD), section.unit_s, section.least_s),
                drain_s=settings.server.timeouts.drain_s,
                timezone=settings.timezone,
            )
        )
    return found
