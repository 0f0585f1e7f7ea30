"""Save and load trained networks as folders of plain files."""
