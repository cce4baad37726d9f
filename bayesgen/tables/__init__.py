"""Rows as users bring them, and what becomes of them: tables, schemas, labels."""
