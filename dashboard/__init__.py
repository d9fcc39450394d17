"""Finance and SRE in the browser; reads the ledger, writes nothing."""
