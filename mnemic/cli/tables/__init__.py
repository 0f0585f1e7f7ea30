"""Commands that rebuild tables, one file per table."""
