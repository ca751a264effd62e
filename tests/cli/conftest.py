"""What every test of the command line may ask for."""

from tests.cli.running import trinco_run, url

__all__ = ["trinco_run", "url"]
