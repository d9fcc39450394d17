"""Own engines: installed, planned, supervised and measured."""
