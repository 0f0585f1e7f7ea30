"""Readers of pictures: the text that they show."""
