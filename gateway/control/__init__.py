"""Control plane: operations of people on a gateway, over HTTP or on the command line."""
