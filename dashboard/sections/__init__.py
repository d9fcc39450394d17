"""Sections of pages that are long, have their own form, or appear on two pages."""
