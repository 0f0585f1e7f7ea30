"""Responses that say what is in a picture: decoders of captions."""
