"""Compare every objective of pre-training on one encoder, at equal tokens and at equal seconds.

``rows.toml`` has the objectives, ``scales.toml`` the sizes, the budgets and the fine-tuning.
"""
