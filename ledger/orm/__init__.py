"""The tables, by what they are of; `tables` has all of them in one namespace."""
