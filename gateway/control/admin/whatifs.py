"""Operations of `breakeven policy simulate`: what a policy set would have done.

A simulation is started and then polled, so that no request stays open for minutes. It replays the
ledger's traffic of all teams, so the caller needs access to all usage. Nothing is sent, and the
ledger does not change.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec

from gateway.auth import EVERY_TEAM, USAGE
from gateway.config.environ import ledger_reader
from gateway.control import policy_changes as policyverbs
from gateway.control.admin.policies import Name
from gateway.control.admin.verb import NUMBER_LIMIT, OperationContext, OperationRefused, verb
from gateway.control.whatif_jobs import (
    IN_FORCE,
    LIMIT_S,
    REQUESTS,
    REQUESTS_MOST,
    WhatIfBusy,
    WhatIfJobSpec,
    WhatIfRequest,
    WhatIfRunner,
)

_LISTED = 20
_Set = Annotated[
    str, msgspec.Meta(description=f"YAML with `policies`, or `{IN_FORCE}`: those in force")
]
_Other = Annotated[str, msgspec.Meta(description=f"a second set beside it: YAML, or `{IN_FORCE}`")]
_Job = Annotated[str, msgspec.Meta(max_length=32, description="as named; default: the newest")]
_Line = Annotated[str, msgspec.Meta(max_length=300)]


class WhatIfInput(msgspec.Struct, forbid_unknown_fields=True):
    policies: _Set
    against: _Other | None = None
    name: Name = "the set"
    against_name: Name = IN_FORCE
    ledger: Annotated[
        str,
        msgspec.Meta(
            max_length=60,
            description="whose traffic: `last-7-days`, `last-24-hours`, `2026-11-01..2026-11-08`",
        ),
    ] = "last-24-hours"
    model: Annotated[
        list[_Line],
        msgspec.Meta(max_length=_LISTED, description="FROM=TO for a name of the traffic, or TO"),
    ] = []
    engine: Annotated[
        list[_Line],
        msgspec.Meta(max_length=_LISTED, description="POOL=PROFILE where nothing was measured"),
    ] = []
    times: Annotated[
        float, msgspec.Meta(ge=0.001, le=1000.0, description="so many times the traffic")
    ] = 1.0
    most: Annotated[
        int, msgspec.Meta(ge=1, le=REQUESTS_MOST, description="requests, the earliest")
    ] = REQUESTS
    seed: Annotated[int, msgspec.Meta(ge=0, le=NUMBER_LIMIT, description="of APIs' latencies")] = 1


class JobInput(msgspec.Struct, forbid_unknown_fields=True):
    job: _Job | None = None


class CancelWhatIfInput(msgspec.Struct, forbid_unknown_fields=True):
    job: Annotated[str, msgspec.Meta(max_length=32, description="as named")]


@verb(
    "POST /policies/simulate",
    USAGE + EVERY_TEAM,
    "policy simulate",
    "Begin to play recorded traffic under one or two sets; one at a time on a host",
    WhatIfInput,
)
def policies_simulate(place: OperationContext, given: WhatIfInput) -> dict[str, Any]:
    sets = [(given.name, given.policies)]
    if given.against is not None:
        sets.append((given.against_name, given.against))
    names = [name for name, _ in sets]
    if len(set(names)) < len(names):
        raise OperationRefused(
            "the two policy sets have the same name: rename one", param="against_name"
        )
    for name, text in sets:
        if text != IN_FORCE:
            policyverbs.parse_change(text, place.settings, name)
    asked = WhatIfRequest(
        tuple(sets), given.ledger, tuple(given.model), tuple(given.engine), given.times,
        given.most, given.seed,
    )  # fmt: skip
    stated = place.settings.model_dump(mode="json", exclude_unset=True)
    order = WhatIfJobSpec(asked, stated, place.now_us)
    with _what_ifs(place) as what_ifs:
        try:
            job = what_ifs.start_job(order, place.by)
        except WhatIfBusy:
            found = what_ifs.job_status(None)
            who = "" if found is None else f", asked for by {found['by']}"
            words = f"another what-if is under way on this host{who}: ask again when it has ended"
            raise OperationRefused(words, kind="what_if_busy") from None
    return {"job": job, "limit_s": LIMIT_S}


@verb(
    "GET /policies/simulate",
    USAGE + EVERY_TEAM,
    "policy simulate",
    "How far a what-if is, and what came out: dollars, promises kept, spill, load, differences",
    JobInput,
)
def policies_simulated(place: OperationContext, given: JobInput) -> dict[str, Any]:
    with _what_ifs(place) as what_ifs:
        found = what_ifs.job_status(given.job)
    if found is None:
        words = "there is no such what-if" if given.job else "nobody has asked for a what-if yet"
        raise OperationRefused(
            f"{words}: a host forgets them with its next start", kind="no_what_if"
        )
    return found


@verb(
    "DELETE /policies/simulate",
    USAGE + EVERY_TEAM,
    None,
    "Cancel a what-if: its process ends, and the next one may be asked for",
    CancelWhatIfInput,
)
def policies_simulate_cancel(place: OperationContext, given: CancelWhatIfInput) -> dict[str, Any]:
    with _what_ifs(place) as what_ifs:
        found = what_ifs.cancel(given.job, place.by)
    if found is None:
        words = "there is no such what-if: a host forgets them with its next start"
        raise OperationRefused(words, kind="no_what_if")
    return found


@contextmanager
def _what_ifs(place: OperationContext) -> Iterator[WhatIfRunner]:
    """Yield the what-if runner of this host, which must be running."""
    with place.engines() as host:
        runtime = host.runtime
        yield WhatIfRunner(runtime.run_dir, ledger_reader(os.environ, runtime.ledger_url))


VERBS = (policies_simulate, policies_simulated, policies_simulate_cancel)
