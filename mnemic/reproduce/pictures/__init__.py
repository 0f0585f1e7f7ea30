"""The table of networks that look at pictures."""
