"""Finance and SRE in the browser; reads the ledger, asks the gateway."""
