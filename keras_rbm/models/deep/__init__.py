"""Deep Boltzmann machines and deep belief networks."""
