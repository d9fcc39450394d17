"""Control plane: operations that people ask a gateway for, over HTTP or on the command line."""
