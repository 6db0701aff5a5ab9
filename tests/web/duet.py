"""A MIDI keyboard and a synthesizer that are not there, and somebody who plays a duet on them."""

import json

PORTS = (
    "globalThis.sent = []; navigator.requestMIDIAccess = async () => globalThis.midi = {"
    " inputs: new Map([['keys', {}]]),"
    " outputs: new Map([['synth', { name: 'Synth', send: (data, at = performance.now()) =>"
    " sent.push([...data, at]) }]]) }; 0"
)
PHRASE = """(async () => {
  const key = async (timeStamp, status, pitch) => {
    await new Promise((done) => setTimeout(done, timeStamp - performance.now()));
    midi.inputs.get('keys').onmidimessage({ data: [status, pitch, 80], timeStamp });
  };
  const [pitches, beat, uneven] = %s;
  const begin = Math.max(%s, performance.now());
  for (const [number, pitch] of pitches.entries()) {
    await key(begin + number * beat + (uneven[number] ?? 0), 0x90, pitch);
    await key(begin + (number + 0.8) * beat, 0x80, pitch);
  }
  return begin;
})()"""
HANGING = """(() => {
  const last = new Map();
  for (const [status, pitch, , at] of sent.filter(([status]) => status < 0xa0)) {
    const key = `${status & 15}/${pitch}`;
    if (at >= (last.get(key)?.at ?? 0)) last.set(key, { at, isOn: status >= 0x90 });
  }
  return [...last.values()].filter(({ isOn }) => isOn).length;
})()"""
ANSWER = "sent.find(([status, pitch, , at]) => status >> 4 == 9 && at > {end})"


def connect(tab):
    """Connects the keyboard, and lets the synthesizer sound."""
    tab.ask(PORTS)
    tab.click("#midi")
    tab.until("document.getElementById('midi-out').options.length == 2")
    tab.choose("#midi-out", "synth")


def begin(tab, pause):
    """Begins a duet."""
    tab.click("[name=mode][value=duet] + span")
    tab.choose("#pause", pause)
    tab.click("#duet")


def play(tab, pitches, beat, begin=0.0, uneven=()):
    """Plays quarter notes, and gives the milliseconds at which they began and the answer did.

    They begin as soon as it can be after `begin`; a beat lasts `beat` milliseconds, and each note
    may come some `uneven` milliseconds early or late.
    """
    began = tab.ask(PHRASE % (json.dumps([pitches, beat, list(uneven)]), begin))
    end = began + (len(pitches) - 0.5) * beat
    return began, tab.until(ANSWER.format(end=end))[3]
