"""Arithmetic of `engine plan`: memory, speed, layouts, draft models and weight formats."""
