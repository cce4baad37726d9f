"""Parts of saving and loading: whole files, a checksum against accidents, values that run no code."""
