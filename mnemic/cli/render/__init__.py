"""Print tables, progress bars and messages, and draw plots."""
