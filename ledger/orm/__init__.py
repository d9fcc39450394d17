"""The tables of the ledger, by subject; `tables` has all of them in one namespace."""
