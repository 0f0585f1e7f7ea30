"""Work in threads: bounded pools, jobs that a restart does not forget, watched folders."""
