"""Published tables, rebuilt by one command."""
