"""The hash chains over the books, and what may go once it is sealed."""
