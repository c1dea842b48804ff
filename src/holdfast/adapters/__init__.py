"""One adapter for each framework; importing one needs that framework."""
