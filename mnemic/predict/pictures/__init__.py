"""What networks that read words beside pictures predict."""
