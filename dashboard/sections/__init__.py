"""Sections of pages that are long, have a form of their own or stand on two pages."""
