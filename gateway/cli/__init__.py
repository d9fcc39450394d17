"""Command line `breakeven`: one file per noun, over operations that HTTP has, too."""
