"""Pages as pictures, and where words are on them; the sandbox process makes both."""
