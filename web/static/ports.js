// MIDI ports: keyboards that are played on, and where the notes go that the page plays.
import { byId, field, make, say, setHidden } from "./dom.js";
import { piano } from "./entry.js";
import { MidiOut } from "./midi.js";
import { sound } from "./page.js";
import { counted } from "./piece.js";

/** @type {MIDIAccess | null} */
let access = null;

/** Asks the browser for MIDI; hears all keyboards, now and later plugged in. */
async function connect() {
  access = await navigator.requestMIDIAccess();
  access.onstatechange = listen;
  listen();
  const count = access.inputs.size;
  say(
    count
      ? `${counted(count, "MIDI keyboard")} connected.`
      : "No MIDI keyboard is plugged in. Plug one in at any time.",
  );
}

function listen() {
  if (!access) return;
  for (const input of access.inputs.values()) input.onmidimessage = (event) => piano.onMidi(event);
  const was = field("midi-out").value;
  const ports = [...(access.outputs?.entries() ?? [])];
  field("midi-out").replaceChildren(
    make("option", { value: "" }, "this page"),
    ...ports.map(([id, { name }]) => make("option", { value: String(id) }, name ?? String(id))),
  );
  field("midi-out").value = ports.some(([id]) => String(id) === was) ? was : "";
  setHidden(byId("midi-out-label"), !ports.length);
  if (field("midi-out").value !== was) choose();
}

/** Lets a port sound what is played, or the page itself. */
function choose() {
  sound.silence();
  const ports = [...(access?.outputs?.entries() ?? [])];
  const port = ports.find(([id]) => String(id) === field("midi-out").value)?.[1];
  sound.out = port ? new MidiOut(port, (program) => sound.general(program)) : null;
  if (port) say(`Notes now sound from ${port.name}; this page plays only the clicks.`);
}

field("midi-out").addEventListener("change", choose);
byId("midi").hidden = !("requestMIDIAccess" in navigator);
byId("midi").addEventListener("click", () =>
  connect().catch(() => say("The browser does not let this page use MIDI.", true)),
);
