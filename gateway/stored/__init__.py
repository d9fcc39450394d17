"""What clients read and change of stored answers and conversations."""
