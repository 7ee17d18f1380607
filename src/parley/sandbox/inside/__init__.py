"""What runs inside: plain files of the standard library only, sent in as text when a sandbox
starts."""
