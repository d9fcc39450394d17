"""OpenAI's Files and Batch API: batch requests run on idle engine capacity.

Files and batch lines are stored in the ledger's database (`ledger.batches`), so any host can take
them. The runner, a process of its own, validates batches, claims lines under leases, sends them to
this host's workers, stores answers and writes output files. A worker takes a line at its `entrance`
with the key that made the batch. Policy, budgets and metering are those of any request; the planner
differs: a line uses an own engine only while it is idle (`router.idle`), and an API only near the
end of its batch or without an own engine. Each try has its own request id and ledger row.
"""
