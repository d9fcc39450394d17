"""Which kinds of content keep a request inside under a policy: pure."""

from gateway.kinds.inference_request import InferenceRequest
from router.content import UNKNOWN, ContentTerms


def kept_kinds(asked: InferenceRequest, terms: ContentTerms) -> str:
    """Return the kinds for which a request may not leave, `unknown` where nobody looked for them.

    Its rule may be another one than when it was inspected (an hour began, it was shortened): what
    that one says was not looked for, so nobody can tell that it may leave.
    """
    content = asked.content
    if content is None:
        return UNKNOWN if terms else ""
    if content.terms != terms and not set(terms) <= set(content.terms):
        return content.kept_for or UNKNOWN
    return content.kept_for
