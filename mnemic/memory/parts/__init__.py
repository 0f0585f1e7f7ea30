"""Building blocks of the memory networks."""
