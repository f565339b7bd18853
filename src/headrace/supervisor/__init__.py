"""The worker processes of one machine: started, watched, replaced and ended; nothing of the app."""
