"""Plays a run within its limits; forecasts and simulates one."""
