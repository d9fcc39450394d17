"""What pages and commands read, by what they ask; `reads` has all of it in one namespace."""
