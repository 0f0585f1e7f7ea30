"""Language models with an explicit memory."""

__version__ = "0.1.0"
