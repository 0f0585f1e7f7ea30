"""Commands about one long text and the memory file it is read into."""
