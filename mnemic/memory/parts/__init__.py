"""Pieces that several memory networks share."""
