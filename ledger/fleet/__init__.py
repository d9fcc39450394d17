"""Own GPUs in the ledger: contracts, billed hours, their use, and their capacity."""
