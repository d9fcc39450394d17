"""Dialects: other formats of a chat completion (Anthropic's Messages, OpenAI's Responses).

A dialect only translates at the edge. Its request becomes the chat request that is planned, held,
dispatched and metered. The relay's chat bytes, in whole events, become the dialect's bytes on their
way to the socket, in the same order and without delay. So what the relay withholds until the settle
is durable stays withheld. `base` defines a dialect, `translated_paths` its paths,
`response_encoder` its answers, `translated_response` the client's side. Usage is the ledger's.
"""
