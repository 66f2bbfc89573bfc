"""Configuration in YAML, with Storm's keys where they mean the same here."""

from thalweg.storm_config.applying import Configured, configured
from thalweg.storm_config.config import StormConfig, read_config

__all__ = ["Configured", "StormConfig", "configured", "read_config"]
