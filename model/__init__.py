"""The decoder and what is done with it: of music it knows pitches and the octave, no more."""
