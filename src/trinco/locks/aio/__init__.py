"""Locks for async code: the same hub and the same claimants, with tasks in place of threads (asyncio or trio)."""
