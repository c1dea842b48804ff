"""What the operating system gives: forks, locks, private files, terminals, crash points."""
