"""The same examples on every machine, and no complaint when a machine is slow: a test run must not depend on luck."""

from hypothesis import HealthCheck, settings

settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
