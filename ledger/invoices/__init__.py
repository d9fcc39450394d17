"""Bills of providers and clouds beside the books."""
