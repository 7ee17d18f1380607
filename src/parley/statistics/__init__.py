"""Statistics: plain observations in, estimates with their uncertainty out."""
