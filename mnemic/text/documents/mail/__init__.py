"""E-mails."""
