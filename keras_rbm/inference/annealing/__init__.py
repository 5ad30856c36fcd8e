"""Estimates of log Z by annealing and tempering, and their starting points."""
