"""The decoder, and what writes and scores with it; it knows of music only pitch and octave."""
