"""Prefect configures logging for the process that imports it; other tests log outside of runs."""

import os

os.environ.setdefault("PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW", "ignore")
