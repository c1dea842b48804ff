"""What clients do, written once for sync and async: plans that ask a store and do no I/O."""
