"""Ways to search a memory: every file without an underscore is a retriever that users name. Its
`make` takes what stands behind the slash, or nothing."""
