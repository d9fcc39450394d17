"""Duration of audio files, decoded by FFmpeg in confined processes.

`SoundDecoder` is the one entry point for a worker. Only the decoder's process imports FFmpeg:
`decoder_host` starts there and forks one confined child per file.
"""
