"""Whether chords hold in a MIDI file, by pretty_midi and nothing of ours."""

import re

import pretty_midi

LETTERS = dict(zip("CDEFGAB", (0, 2, 4, 5, 7, 9, 11), strict=True))
QUALITIES = {
    **{"": "0 4 7", "m": "0 3 7", "dim": "0 3 6", "aug": "0 4 8", "sus2": "0 2 7"},
    **{"sus4": "0 5 7", "7": "0 4 7 10", "maj7": "0 4 7 11", "m7": "0 3 7 10"},
    **{"m7b5": "0 3 6 10", "dim7": "0 3 6 9", "6": "0 4 7 9", "m6": "0 3 7 9", "9": "0 4 7 10 2"},
}
STEPS = 12  # a quarter note


def pitch_class(name):
    return (LETTERS[name[0]] + name.count("#") - name[1:].count("b")) % 12


def what_is_broken(file, chords, given=(), begin=0, has_bass=True):
    """A line for each chord that does not hold.

    Args:
        file: the path of a MIDI file of one time signature.
        chords: rows of symbol, first step and end, a twelfth of a quarter note each.
        given: (program, step, pitch) of notes that may be what they are.
        begin: the first step that is looked at.
        has_bass: whether the lowest new note has to be the bass.
    """
    midi = pretty_midi.PrettyMIDI(str(file))
    meter = midi.time_signature_changes[0]
    is_compound = meter.denominator == 8 and meter.numerator % 3 == 0 and meter.numerator > 3
    beat = STEPS * (3 if is_compound else 2) // 2
    notes = []  # program, first step, end, pitch, whether it is new
    for part in midi.instruments:
        for note in part.notes:
            first, end = (
                round(midi.time_to_tick(time) / midi.resolution * STEPS)
                for time in (note.start, note.end)
            )
            if not part.is_drum:
                key = (part.name or part.program, first, note.pitch)
                notes.append((first, end, note.pitch, key not in given))
    broken = []
    for symbol, first, end in chords:
        letter, quality, under = re.fullmatch("([A-G][#b]?)([^/]*)/?(.*)", symbol).groups()
        root = pitch_class(letter)
        own = [(root + int(above)) % 12 for above in QUALITIES[quality].split()]
        bass = pitch_class(under) if under else root
        fits, where = {*own, bass}, f"{symbol} at {first}"
        new = [note for note in notes if note[3]]
        sounding = [pitch for begun, over, pitch, _ in new if begun <= first < over]
        if first >= begin and sounding:
            if wrong := [pitch for pitch in sounding if pitch % 12 not in fits]:
                broken.append(f"{where}: {wrong} sound")
            if has_bass and min(sounding) % 12 != bass:
                broken.append(f"{where}: {min(sounding)} is its bass")
            beat_end = min(first + beat, end)
            heard = {n[2] % 12 for n in notes if n[0] < beat_end and n[1] > first}
            kept = {n[2] % 12 for n in notes if n[0] < beat_end and n[1] > first and not n[3]}
            needed = {root, own[1], *([bass] if has_bass else [])} - kept
            voices = {n[2] for n in new if n[0] < beat_end and n[1] > first}
            if len(voices) >= len(needed) and has_bass and {root, own[1]} - heard:
                broken.append(f"{where}: {sorted({root, own[1]} - heard)} do not sound")
        for begun, _, pitch, _ in new:
            is_later = first < begun < end and begun >= begin
            if is_later and (begun - first) % beat == 0 and pitch % 12 not in fits:
                broken.append(f"{where}: {pitch} on a beat, at {begun}")
        if has_bass and first >= begin and not sounding:
            broken.append(f"{where}: nothing sounds")
    return broken
