"""Everything that speaks to a model server or runs one."""
