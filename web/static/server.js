// The connection to the server: questions with numbers, answers to whoever asked last.

/**
 * What the server tells: what is said depends on what was asked.
 * @typedef {Record<string, any>} Told
 */

const STOPPED = "the server has stopped";

export class Server {
  /** @param {(isThere: boolean) => void} onState */
  constructor(onState) {
    this.onState = onState;
    this.number = 0;
    /** @type {Map<string, { id: number, hear: (told: Told) => void }>} */
    this.asked = new Map();
    this.socket = this.connect();
  }

  connect() {
    const protocol = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${protocol}://${location.host}/live`);
    socket.onopen = () => this.onState(true);
    socket.onclose = () => {
      for (const { hear } of this.asked.values()) hear({ error: STOPPED });
      this.asked.clear();
      this.onState(false);
      setTimeout(() => (this.socket = this.connect()), 1500);
    };
    socket.onmessage = (event) => {
      const told = JSON.parse(event.data);
      for (const { id, hear } of this.asked.values()) if (told.id === id) hear(told);
    };
    return socket;
  }

  /**
   * Asks; of each kind of question only the latest is answered. `hear` gets all that is told.
   * @param {string} kind
   * @param {object} message
   * @param {(told: Told) => void} hear
   */
  ask(kind, message, hear) {
    const id = ++this.number;
    this.asked.set(kind, { id, hear });
    if (this.socket.readyState === WebSocket.OPEN)
      this.socket.send(JSON.stringify({ ...message, do: kind, id }));
    else hear({ error: STOPPED });
  }

  /**
   * What is still told of the latest question of a kind is not heard.
   * @param {string} kind
   */
  forget(kind) {
    this.asked.delete(kind);
  }

  stop() {
    this.forget("write");
    if (this.socket.readyState === WebSocket.OPEN)
      this.socket.send(JSON.stringify({ do: "stop", id: ++this.number }));
  }
}

/**
 * What the server answers; throws its line where it refuses.
 * @param {string} path
 * @param {BodyInit} body
 */
export async function post(path, body) {
  const response = await fetch(path, { method: "POST", body }).catch(() => {
    throw new Error(STOPPED);
  });
  if (!response.ok) throw new Error((await response.text()).trim());
  return response;
}
