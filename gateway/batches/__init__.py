"""OpenAI's Files and Batch API: work that may wait, sold the engine-seconds that nobody else wants.

Clients' files and the lines of batches lie in the ledger's database (`ledger.batches`), so any
host on it can take them. A process of its own, the runner, validates batches, claims lines under
leases, sends each through this host's workers, stores the answers and writes the output files. A
worker takes a line at its `entrance`, as the key that made the batch: policy, budgets, decision,
metering and journal are those of any request. What differs is the planner: a line goes to an own
engine only while that is idle enough (`router.idle`), and to an API only once its batch is near
its end or no own engine serves its model. Every try of a line is a request id of its own and so
its own row of the ledger; a line is answered once, by who holds its claim.
"""
