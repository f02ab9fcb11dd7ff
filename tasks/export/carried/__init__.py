"""What every exported package holds word for word: stdlib and torch only, imports relative."""
