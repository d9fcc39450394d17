"""Operations of operators, finance and team admins, shared by command line and HTTP.

    verb        definition of an operation: path, input, function
    policies, whatifs, overrides, engines, keys, prices, invoices, rates, entries, books
                the operations by subject; `routes` has all of them
    desk, routes
                in a worker: threads, bodies, the routes with their documentation
    remote      client of the command line for a gateway elsewhere

`gateway.cli.admin_backend` runs an operation here or remotely; `gateway.control.access` has scopes.
"""
