"""LiteLLM provider names that cannot be used here, and what others need first.

Each sentence says why and what to do instead; `breakeven check` prints it. Other facts about a name
are generated (`provider_table.json`).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

_VECTORS: Final = "stores vectors, which no request here asks for: call it from the application"
_PROMPTS: Final = (
    "keeps prompts for LiteLLM's proxy and serves no model: render the prompt in the application, "
    "and name the provider of its model here"
)
_DOCUMENTS: Final = "reads documents, a kind of request that is not served here: call it directly"
_DECIDES: Final = "answers LiteLLM's own decision calls only: use policies here, or call it there"
REFUSED: Final[Mapping[str, str]] = {
    "auto_router": "is LiteLLM's own routing: list the models' providers under `targets` instead",
    "aws_textract": _DOCUMENTS,
    "chatgpt": "asks for a sign-in in a browser: use `openai` with an API key",
    "cursor": "runs agents in its own cloud and serves no model: name the model's provider",
    "dotprompt": _PROMPTS,
    "github_copilot": "asks for a sign-in in a browser: use `github`, GitHub's API of models",
    "humanloop": _PROMPTS,
    "langfuse": _PROMPTS,
    "litellm_agent": "is an agent inside LiteLLM's proxy: name the provider of its model",
    "manus": "has tasks of the Responses API only, which it works on later: call it directly",
    "milvus": _VECTORS,
    "mongodb": _VECTORS,
    "pg_vector": _VECTORS,
    "reducto": _DOCUMENTS,
    "s3_vectors": _VECTORS,
    "strands_decider": _DECIDES,
    "topaz": "varies pictures, a kind of request that is not served here: call it directly",
    "transcribe": "transcribes over a stream of its own: use `deepgram` or `soniox` instead",
    "typesafe": _DECIDES,
    "valkey": _VECTORS,
}  # fmt: skip
# Names that LiteLLM serves without chat.
KINDS: Final[Mapping[str, frozenset[str]]] = {
    "aws_polly": frozenset({"speech"}),
    "azure_speech": frozenset({"speech"}),
    "black_forest_labs": frozenset({"image_generation"}),
    "deepgram": frozenset({"transcription"}),
    "elevenlabs": frozenset({"speech", "transcription"}),
    "fal_ai": frozenset({"image_generation"}),
    "infinity": frozenset({"embedding"}),
    "jina_ai": frozenset({"embedding"}),
    "nvidia_riva": frozenset({"transcription"}),
    "recraft": frozenset({"image_generation"}),
    "runwayml": frozenset({"image_generation", "speech"}),
    "soniox": frozenset({"transcription"}),
    "stability": frozenset({"image_generation"}),
    "voyage": frozenset({"embedding"}),
}


class AdapterNeeds(NamedTuple):
    """Requirements of LiteLLM for one of its provider names.

    `variables`: one variable of each group must be set. `address`: a variable with the address if
    `base_url` lacks it; empty: `base_url` is required; `None`: LiteLLM knows it. `endings`:
    required ends of the address. `package`: a module that is not among our dependencies.
    """

    variables: tuple[tuple[str, ...], ...] = ()
    address: str | None = None
    package: str = ""
    endings: tuple[str, ...] = ()


_WATSONX: Final = AdapterNeeds((
    ("WATSONX_PROJECT_ID", "WX_PROJECT_ID", "WATSONX_DEPLOYMENT_SPACE_ID", "WATSONX_SPACE_ID",
     "WX_SPACE_ID"),
), "WATSONX_URL")  # fmt: skip
_GOOGLE: Final = AdapterNeeds(package="google.auth")
NEEDS: Final[Mapping[str, AdapterNeeds]] = {
    "a2a": AdapterNeeds(address=""),
    "a2a_agent": AdapterNeeds(address=""),
    "black_forest_labs": AdapterNeeds((("BFL_API_KEY", "BLACK_FOREST_LABS_API_KEY"),)),
    "azure": AdapterNeeds(address="AZURE_API_BASE"),
    "azure_ai": AdapterNeeds(address="AZURE_AI_API_BASE"),
    "azure_speech": AdapterNeeds(address=""),
    "azure_text": AdapterNeeds(address="AZURE_API_BASE"),
    "custom": AdapterNeeds(address=""),
    "databricks": AdapterNeeds(address="DATABRICKS_API_BASE"),
    "gdc": _GOOGLE._replace(address="GDC_API_BASE"),
    "infinity": AdapterNeeds(address="INFINITY_API_BASE"),
    "langflow": AdapterNeeds(address="LANGFLOW_API_BASE"),
    "langgraph": AdapterNeeds(address="LANGGRAPH_API_BASE"),
    "nvidia_riva": AdapterNeeds(address="", package="riva"),
    "oci": AdapterNeeds((
        ("OCI_USER",), ("OCI_FINGERPRINT",), ("OCI_TENANCY",), ("OCI_COMPARTMENT_ID",),
        ("OCI_KEY", "OCI_KEY_FILE"),
    )),
    "petals": AdapterNeeds(address=""),
    "predibase": AdapterNeeds((("PREDIBASE_TENANT_ID",),)),
    "ragflow": AdapterNeeds(address="RAGFLOW_API_BASE"),
    "sap": AdapterNeeds((
        ("AICORE_SERVICE_KEY", "AICORE_CLIENT_ID", "AICORE_CONFIG", "AICORE_HOME"),
    )),
    "snowflake": AdapterNeeds(address="SNOWFLAKE_ACCOUNT_ID"),
    "triton": AdapterNeeds(address="", endings=("/generate", "/infer")),
    "vertex_ai": _GOOGLE,
    "vertex_ai_beta": _GOOGLE,
    "watsonx": _WATSONX,
    "watsonx_text": _WATSONX,
}  # fmt: skip
