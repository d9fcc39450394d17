"""The command line: `breakeven`, one file per noun, over verbs that HTTP has too."""
