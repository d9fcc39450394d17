"""Pure routing decisions: a request, a policy and frozen candidates in, an explained choice out."""
