"""What a topic asks of the schemas of records at publish (ADR 51); pure."""
