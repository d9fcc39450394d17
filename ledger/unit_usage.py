"""Usage of speech and of pictures that are made: tokens, and what is charged in their place."""

from collections.abc import Mapping

from ledger.journals.token_kinds import CHARACTERS_LIMIT, PICTURES_LIMIT, TokenCounts
from ledger.usage import UsageError, check_limit, details_of, first_count


def tokens_of_speech(usage: Mapping[str, object]) -> TokenCounts:
    """Tokens of the text and of its sound, as OpenAI's stream ends with; characters of others."""
    read = first_count(usage, "input_tokens", "prompt_tokens")
    made = first_count(usage, "output_tokens", "completion_tokens")
    characters = first_count(usage, "characters", "input_characters", "billed_characters")
    if read is None and made is None and characters is None:
        raise UsageError("neither tokens nor characters are there")
    if (characters or 0) > CHARACTERS_LIMIT:
        raise UsageError(f"more than {CHARACTERS_LIMIT} characters in one request")
    output = made or 0
    return check_limit(
        TokenCounts(input=read or 0, output=output, audio_output=output, characters=characters or 0)
    )


def tokens_of_pictures(usage: Mapping[str, object]) -> TokenCounts:
    """Pictures of the answer, and tokens where the target counts them: of pictures, unless told.

    `generated_images` is how many pictures came: `backends.answers` counts them.
    """
    pictures = first_count(usage, "generated_images") or 0
    if pictures > PICTURES_LIMIT:
        raise UsageError(f"more than {PICTURES_LIMIT} pictures in one request")
    read = first_count(usage, "input_tokens", "prompt_tokens") or 0
    made = first_count(usage, "output_tokens", "completion_tokens") or 0
    details = details_of(
        usage, "output_tokens_details", "output_token_details", "completion_tokens_details"
    )
    text = first_count(details, "text_tokens", "reasoning_tokens") or 0
    image = first_count(details, "image_tokens")
    image = max(0, made - text) if image is None else image
    if image > made:
        raise UsageError(f"{image} image of {made} output tokens")
    return check_limit(TokenCounts(input=read, output=made, image_output=image, pictures=pictures))
