"""The simulated engine: HTTP and `vllm:` metrics like vLLM's, from a fitted step-time model."""
