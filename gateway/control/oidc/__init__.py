"""Sign-in of people to the admin API with tokens of an identity provider (section `oidc`).

    tokens      verification of a token: signature, audience, lifetime; no I/O
    issuer      keys of the provider: fetched, cached and refreshed within limits
    signin      both together: a token to verified claims

The access file, not the token, says what a person may do (`gateway.control.people`).
"""
