"""Detectors of crashes. Each is a part that tells its owner who is newly suspected."""
