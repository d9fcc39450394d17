"""People at the admin API by a token of the house's identity provider (the section `oidc`).

    tokens      whether a token holds: its signature, for whom it is, until when; no I/O
    issuer      the provider's keys: fetched, kept, asked for again, all of it bounded
    signin      both together: a token to what it says of a person

What a person may do is no matter of the token: the access file says it (`gateway.control.people`).
"""
