"""Code that runs inside the sandbox. It uses only the standard library, and is sent in as text
when a sandbox starts."""
