"""Other ways to say what a chat completion says: Anthropic's Messages and OpenAI's Responses.

A dialect is translation at the edge and nothing else. Its request becomes the chat request that is
planned, held for, dispatched and metered like any other; what the relay hands to the client (bytes
of chat, in whole events) becomes this dialect's bytes on their way into the socket. Order and time
of the bytes stay the relay's: what it withholds until the settle is durable, stays withheld.

`base` says what a dialect is, `spoken` which path speaks which, `voice` how an answer is told,
`reply` where the client's side is wrapped. Usage is what the ledger reads of the same numbers.
"""
