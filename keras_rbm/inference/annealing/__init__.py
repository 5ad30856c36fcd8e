"""Estimates of log Z by annealing and tempering, and where they start."""
