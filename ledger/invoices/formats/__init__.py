"""What invoices look like as providers and clouds give them: one file a format."""
