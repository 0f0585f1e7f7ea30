"""Dates in texts: absolute ones, times relative to a day, and lines that date what follows."""
