"""Questions to the ledger, as the person may ask them, cached between the runs of a page."""
