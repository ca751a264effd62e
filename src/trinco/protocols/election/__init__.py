"""Elections: who leads, when the one that led has crashed."""
