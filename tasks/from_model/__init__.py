"""The operators of a real model, as files that a campaign can start from."""
