"""Readers of e-mails."""
