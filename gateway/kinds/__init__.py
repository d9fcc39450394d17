"""Registry of request kinds: one module per kind, which reads its requests and ends them.

`KINDS` has the entry of each kind, `KIND_PATHS` the reader of each path. To add a kind, add a
member of `router.request_kinds.RequestKind` with its traits, and a module here, named by the
member's value, whose `SPEC` is the entry.
"""

from importlib import import_module
from typing import Final

from gateway.kinds.inference_request import BodyReader
from gateway.kinds.spec import RequestKindSpec
from router.request_kinds import RequestKind

__all__ = ["BATCH_PATHS", "KINDS", "KIND_PATHS"]


def _entry(kind: RequestKind) -> RequestKindSpec:
    spec = import_module(f"{__name__}.{kind.value}").SPEC
    if not isinstance(spec, RequestKindSpec) or spec.kind is not kind:
        raise TypeError(f"gateway/kinds/{kind.value}.py has no `SPEC` of `{kind.value}`")
    return spec


# Plain dicts, since they are read for every request.
KINDS: Final[dict[RequestKind, RequestKindSpec]] = {kind: _entry(kind) for kind in RequestKind}
KIND_PATHS: Final[dict[str, BodyReader]] = {
    path: described.reader for spec in KINDS.values() for path, described in spec.paths.items()
}
BATCH_PATHS: Final = tuple(path for spec in KINDS.values() if spec.batched for path in spec.paths)
