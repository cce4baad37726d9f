"""What saving and loading are made of: whole files, a seal against accidents, values that run no code."""
