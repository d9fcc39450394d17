"""Tokens of a prompt: the estimate, its bound, and the input of each target's bound."""

from gateway.kinds import KINDS
from gateway.kinds.billable_units import sound_tokens
from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.prompt_media import PromptMedia, likely_tokens
from ledger.prices.modellimits import CONTEXT_UNSTATED
from router.estimate_rows import RowKey
from router.token_ratio import TokenRatio


def estimate_prompt(
    asked: InferenceRequest, ratio: TokenRatio, key: RowKey, stated: int
) -> tuple[int, int]:
    """Return the prompt's estimated tokens and their bound at a target without known limits.

    `stated` is the configured maximum of tokens per picture.
    """
    # Picture data are no text, whether or not their size is known.
    estimate, bound = ratio.estimate(key, asked.prompt_bytes - asked.picture_bytes)
    # A URL has hardly any bytes, nor has a plain picture.
    bound += asked.media_parts * stated + asked.sound_tokens_bound + asked.seldom_read_bytes
    if asked.files:
        bound = max(bound, CONTEXT_UNSTATED)  # each target has its own bound (`prompt_bound`)
    if asked.picture_bytes:
        estimate += likely_tokens(asked.pictures, asked.unread_pictures, stated)
    estimate += asked.sound_tokens
    if asked.extent is None:
        return estimate, bound
    heard, heard_bound = sound_tokens(asked.extent)
    return estimate + heard, bound + heard_bound


def prompt_media(
    asked: InferenceRequest, ratio: TokenRatio, key: RowKey, stated: int
) -> PromptMedia | None:
    """Return the input of each target's own bound; None for plain text, the usual case."""
    forecast = asked.members.get("prediction")
    if not (asked.media_parts or asked.files or forecast or asked.sound_tokens_bound):
        return None
    _, text_bound = ratio.estimate(key, asked.prompt_bytes - asked.picture_bytes)
    return PromptMedia(
        text_bound + asked.sound_tokens_bound + asked.seldom_read_bytes,
        asked.pictures,
        asked.media_parts - len(asked.pictures),
        stated,
        asked.files,
        0 if forecast is None else len(bytes(forecast)),
        asked.sound_tokens_bound,
        _reads_apart(asked),
    )


def _reads_apart(asked: InferenceRequest) -> bool:
    """Return whether each input is read separately, as in a list; a chat is one prompt."""
    return not KINDS[asked.kind].generated
