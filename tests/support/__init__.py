"""What tests share: servers, a proxy that breaks connections, child processes, a way to wait."""
