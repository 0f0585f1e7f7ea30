"""What commands put on the screen or into a picture."""
