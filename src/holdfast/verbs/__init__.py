"""What clients do, written once for both faces: plans that ask a store and do no I/O."""
