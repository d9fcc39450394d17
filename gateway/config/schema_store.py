"""Section `store`: answers that are stored so that clients can continue from them."""

from typing import Annotated

from pydantic import Field

from gateway.config.sections import ConfigSection


class StoreSection(ConfigSection):
    enabled: bool = Field(
        True,
        description="whether answers are kept, encrypted, for `previous_response_id`, "
        "conversations and stored chat completions; `false` refuses Responses that do not say "
        "`store: false`",
    )
    days: Annotated[float, Field(gt=0.0, le=366.0)] = Field(
        30.0, description="days for which an answer or conversation is kept"
    )
    object_bytes: int = Field(
        16 * 1024 * 1024, ge=1024, description="largest answer that is kept, with its own input"
    )
    team_bytes: int = Field(
        1024**3, ge=1024, description="bytes of one team; its oldest answers go first"
    )
    total_bytes: int = Field(4 * 1024**3, ge=1024, description="bytes of all teams")
    background_runs: int = Field(
        32, ge=0, le=4096, description="background responses that one worker makes at once"
    )
