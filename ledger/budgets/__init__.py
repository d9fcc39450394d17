"""Hard and soft limits: windows, holds, grants to hosts, and the desk that lends to workers."""
