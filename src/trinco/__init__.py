"""Distributed mutual exclusion: locks, leases, k-semaphores and elections, from one laptop to clouds that may lie."""

__version__ = "0.1.0"
