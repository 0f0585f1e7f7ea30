"""Word processors' files and PDF."""
