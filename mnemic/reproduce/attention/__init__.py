"""Compare every kind of attention and every stack of layers at the same size.

``rows.toml`` has the kinds, ``scales.toml`` the sizes, the data and the training of each column.
"""
