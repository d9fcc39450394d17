"""Operations of operators, finance and team admins, each once for command line and HTTP.

    verb        what a verb is: its path, what it is given, what it does
    policies, whatifs, overrides, engines, keys, prices, invoices, rates, entries, books
                the verbs, by what they are about; all of them in `routes`
    desk, routes
                a worker's side: threads, bodies, the routes with their documentation
    remote      the command line's side towards a gateway elsewhere

`gateway.cli.admin_backend` has a verb done here or there; `gateway.control.access` says who may.
"""
