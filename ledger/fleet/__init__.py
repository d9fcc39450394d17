"""Own GPUs as the books have them: contracts, hours, who used them, what they could carry."""
