"""Readers of Word documents and PDF."""
