"""The simulated engine: the same HTTP and `vllm:` metrics as vLLM, from a fitted step-time model."""
