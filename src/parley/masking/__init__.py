"""Hides from other seats who plays: the names of models and of their makers in what seats say."""
