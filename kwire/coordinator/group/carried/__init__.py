"""Groups of kinds that are not coordinated here: kept, listed and described from their records."""
