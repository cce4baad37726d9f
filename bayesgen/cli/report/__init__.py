"""Output of the commands: lines and tables for the terminal, JSON, pictures, and a page of it all."""
