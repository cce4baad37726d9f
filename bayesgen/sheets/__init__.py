"""Tables in files: read and cleaned with an account of how they were written, and taken batch by batch."""
