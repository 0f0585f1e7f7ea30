"""Commands for long texts and the memory file that they are read into."""
