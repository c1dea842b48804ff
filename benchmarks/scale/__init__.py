"""What operations cost as a store grows, and how long writers wait: ``make scale``."""
