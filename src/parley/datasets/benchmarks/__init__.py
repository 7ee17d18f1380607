"""Datasets with a name: one file each, with `DATASETS`."""
