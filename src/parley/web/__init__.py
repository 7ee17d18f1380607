"""The pages in a browser: runs and matches to read, conversations to vote on, seats to play."""
