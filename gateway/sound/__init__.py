"""Lengths of sounds, decoded by FFmpeg in processes that can reach nothing.

`SoundDecoder` is the one entry point for a worker. The decoding library is imported in the
decoder's process alone: `decoder_host` starts there and forks one confined child for each sound.
"""
