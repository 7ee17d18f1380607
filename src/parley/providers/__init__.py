"""Who serves models: a request goes out, a reply comes back. One file per provider."""
