"""HTTP gateway: the only package that imports `backends`, `router` and `ledger`."""
