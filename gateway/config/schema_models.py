"""Section `models`: the names that clients request, and their targets in stages."""

from collections.abc import Iterator
from datetime import date
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from gateway.config.sections import ConfigSection, Positive, Ratio

StageCauseName = Literal["any", "failure", "context", "content_policy"]
STAGES_LIMIT = 8  # after the first: each stage may add tries to a failing request


class ModelTimeoutsSection(ConfigSection):
    """Timeouts of one model; unset ones are those of `server.timeouts`."""

    head_s: Positive | None = Field(
        None, description="time from a sent request to a stream's head, and to its first token"
    )
    whole_s: Positive | None = Field(
        None, description="time to the head of an answer in one piece, which comes at its end"
    )
    idle_s: Positive | None = Field(
        None, description="longest silence between two chunks of an answer"
    )
    total_s: Positive | None = Field(
        None, description="time for one request with all its attempts: streams that flow end, too"
    )


class StageSection(ConfigSection):
    after: StageCauseName | tuple[StageCauseName, ...] = Field(
        "any",
        description="what must have kept a target before from answering: a `failure` (after its "
        "tries, or its circuit is open), a `context` that is too small, its `content_policy`, "
        "one of several in a list, or `any`: these, and a promise, memory, money or residency "
        "that it cannot keep",
    )
    targets: tuple[str, ...] = Field(
        (), description="asked once all targets before failed, refused or cannot serve"
    )
    timeouts: ModelTimeoutsSection | None = None

    @property
    def causes(self) -> tuple[StageCauseName, ...]:
        return (self.after,) if isinstance(self.after, str) else self.after

    @model_validator(mode="before")
    @classmethod
    def _name_its_cause(cls, stage: Any) -> Any:
        if isinstance(stage, dict) and True in stage:
            raise ValueError("YAML reads `on` as true: write `after`")
        return stage


class RetirementSection(ConfigSection):
    """Retirement of a model or alias: its date, and the notice to clients until then."""

    retires: date = Field(
        description="first day, from 0:00 UTC, on which requests for it are refused"
    )
    announced: date | None = Field(
        None, description="day of the `Deprecation` header; `retires` where it is left out"
    )
    successor: str | None = Field(
        None, description="model of this file that clients are told to use"
    )


class ModelSection(ConfigSection):
    targets: tuple[str, ...] = Field(
        (),
        description="`pool:NAME` or `PROVIDER/MODEL`, in no order: the router decides; `then` has "
        "those that are asked later",
    )
    then: tuple[StageSection, ...] = Field(
        (), max_length=STAGES_LIMIT, description="later stages of targets, in order"
    )
    timeouts: ModelTimeoutsSection | None = None
    same_as: str | None = Field(None, description="alias of another logical model")
    retirement: RetirementSection | None = None
    adapter: str | None = Field(
        None, description="LoRA adapter that answers, one of `engine.adapters` of its pools"
    )
    residency: Literal["any", "internal_only"] = Field(
        "any", description="`internal_only` never leaves the network"
    )
    compare_with: tuple[str, ...] = Field(
        (), description="prices to compare with: first the substitute, then same weights elsewhere"
    )
    sticky: Literal["none", "session"] = Field(
        "none", description="keep a session on its target while that is feasible"
    )
    quality_loss: dict[str, Ratio] = Field(
        default_factory=dict,
        description="share of quality that each target loses against the best, as `breakeven "
        "engine eval` measures it; 0: none",
    )

    @property
    def reachable(self) -> tuple[str, ...]:
        """Return the targets of all stages without duplicates."""
        return tuple(dict.fromkeys(target for _, target in self.placed_targets()))

    @property
    def overflow(self) -> tuple[str, ...]:
        """Return the targets that a request may reach without a failure, without duplicates."""
        later = [stage.targets for stage in self.then if "any" in stage.causes]
        return tuple(dict.fromkeys([*self.targets, *chain.from_iterable(later)]))

    def placed_targets(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield every target of every stage with its place in the model's section."""
        for index, target in enumerate(self.targets):
            yield ("targets", index), target
        for number, stage in enumerate(self.then):
            for index, target in enumerate(stage.targets):
                yield ("then", number, "targets", index), target


def _section_tag(value: object) -> str:
    return "word" if isinstance(value, str) else "section"


ModelEntry = Annotated[
    Annotated[ModelSection, Tag("section")] | Annotated[Literal["passthrough"], Tag("word")],
    Discriminator(_section_tag),
]
