// Playing in time: it is shown, and heard with what is there, as it is recorded.
import { added } from "./edit.js";
import { byId, isOn, say, turn } from "./dom.js";
import { change, current, isWriting, on, ownNote, page, sound, startedPiece } from "./page.js";
import {
  barStarts,
  beatsOf,
  counted,
  clockOf,
  lastEnd,
  withBars,
  withNotes,
  withRoom,
} from "./piece.js";
import { Recorder } from "./record.js";
import { redraw, roll } from "./stage.js";
import { playInstead, player, showAt } from "./transport.js";

/**
 * @import { Piece } from "./piece.js"
 * @import { Played, Recording } from "./record.js"
 */

const FOLLOWING_BARS = 99; // in which a metronome clicks

export const recorder = new Recorder(sound, addRecorded);

/**
 * The piece with what has been played so far.
 * @param {Recording} recording
 */
export const withPlayed = (recording) =>
  added(recording.piece, recorder.played(recording).map(ownNote)).piece;

/**
 * The bar that one records from: that of the cursor, or the first after all notes.
 * @param {Piece} piece
 */
function recordedBar(piece) {
  const starts = barStarts(piece);
  const end = lastEnd(piece);
  if (page.cursor < end) return starts.findLastIndex((start) => start <= page.cursor);
  const free = starts.findIndex((start) => start >= end);
  return free < 0 ? piece.bars.length : free;
}

/** The piece that one plays to, without an end. */
function playedTo() {
  const { recording } = recorder;
  if (!recording) return null;
  const { piece, clock } = recording;
  const isClicking = recorder.timer === 0 && isOn("metronome"); // else the recorder clicks
  const beats = isClicking ? beatsOf(withBars(piece, FOLLOWING_BARS)) : [];
  const rest = { loop: null, beats, silent: roll.silent };
  return { piece, clock, isComplete: false, frontier: Infinity, ...rest };
}

/** Shows what there is with what is being recorded, up to the bar that it is in. */
function drawRecorded() {
  const { recording } = recorder;
  if (!recording) return;
  const piece = withRoom(recording.piece, recorder.stepOf(recording) + 1);
  redraw(withNotes(piece, [...piece.notes, ...recorder.played(recording).map(ownNote)]));
}

/**
 * @param {Played[]} notes
 * @param {Recording} recording
 */
function addRecorded(notes, recording) {
  player.stop();
  const before = lastEnd(recording.piece);
  if (notes.length) change(added(startedPiece(), notes.map(ownNote)).piece, "recording");
  const piece = current();
  if (notes.length && piece) {
    // what goes on after the end is gone on with; what was played over the music is listened to
    const isOver = lastEnd(piece) <= before;
    page.cursor = isOver ? recording.at : lastEnd(piece);
    say(`Recorded ${counted(notes.length, "note")}. You can undo this.`);
  } else {
    redraw();
    say("Nothing was played.");
  }
  showAt(page.cursor);
}

export function toggleRecord() {
  if (recorder.isOn) recorder.stop();
  else if (page.plays && !isWriting()) {
    player.stop();
    const piece = startedPiece();
    const from = { piece, clock: clockOf(piece), bar: recordedBar(piece) };
    const { at, begin } = recorder.start(from, () =>
      say("Recording. Press Stop when you are done."),
    );
    player.play(at, begin);
    say("One bar of clicks, then play.");
  }
  byId("record").textContent = recorder.isOn ? "Stop" : "Record";
  turn("record", recorder.isOn);
}

playInstead(playedTo);
setInterval(drawRecorded, 50);
byId("record").addEventListener("click", toggleRecord);
