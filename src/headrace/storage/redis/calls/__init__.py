"""What the storage says to the server, and how it reads the answers, a file a role. No I/O."""
