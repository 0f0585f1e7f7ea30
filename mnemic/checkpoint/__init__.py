"""Trained networks on disk: folders of plain files."""
