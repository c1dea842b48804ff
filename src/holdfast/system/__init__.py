"""What the operating system gives: forks, locks, private files, named crash points."""
