"""Schemas of records: their formats, what is compatible, what is asked of records at publish."""
