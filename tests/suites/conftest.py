"""The files here are material for tests, in KernelBench's form: pytest must not import them."""

collect_ignore_glob = ["level*/*"]
