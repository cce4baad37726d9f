"""Parts of saving and loading: whole files, a seal against accidents, values that run no code."""
