"""Start networks from others: what each family of networks takes, and what it refuses."""
