"""GPU kernels in Triton, imported where a GPU was found."""

TINY = 1e-30  # EntNet's squared norms are at least this, on any device
