// The connection to the server: questions with numbers, answers to whoever asked last.

export class Server {
  constructor(onState) {
    this.onState = onState;
    this.number = 0;
    this.asked = new Map();
    this.connect();
  }

  connect() {
    this.socket = new WebSocket(
      `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live`,
    );
    this.socket.onopen = () => this.onState(true);
    this.socket.onclose = () => {
      for (const { hear } of this.asked.values()) hear({ error: "the server is gone" });
      this.asked.clear();
      this.onState(false);
      setTimeout(() => this.connect(), 1500);
    };
    this.socket.onmessage = (event) => {
      const told = JSON.parse(event.data);
      for (const { id, hear } of this.asked.values()) if (told.id === id) hear(told);
    };
  }

  // Asks; of each kind of question only the latest is answered. `hear` gets all that is told.
  ask(kind, message, hear) {
    const id = ++this.number;
    this.asked.set(kind, { id, hear });
    if (this.socket.readyState === WebSocket.OPEN)
      this.socket.send(JSON.stringify({ ...message, do: kind, id }));
    else hear({ error: "the server is gone" });
  }

  // What is still told of the latest question of a kind is not heard.
  forget(kind) {
    this.asked.delete(kind);
  }

  stop() {
    this.forget("write");
    if (this.socket.readyState === WebSocket.OPEN)
      this.socket.send(JSON.stringify({ do: "stop", id: ++this.number }));
  }
}

export async function post(path, body) {
  const response = await fetch(path, { method: "POST", body });
  if (!response.ok) throw new Error((await response.text()).trim());
  return response;
}
