"""GPU kernels in Triton; import them only where there is a GPU."""

MIN_SQUARED_NORM = 1e-30  # lower bound of EntNet's squared norms, on any device
