// Talking to the assistant: requests that answer with JSON, and the stream of changes.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function answered(response) {
  const type = response.headers.get("content-type") || "";
  const body = type.includes("json") ? await response.json() : { error: (await response.text()).trim() };
  if (!response.ok) throw new Refused(response.status, body.error || `It answered ${response.status}.`);
  return body;
}

export async function ask(path) {
  return answered(await fetch(path, { cache: "no-store" }));
}

export async function tell(name, fields = {}) {
  const headers = { "content-type": "application/json" };
  return answered(await fetch(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(fields) }));
}

// Calls `changed(version)` at every change, `away(refused)` when nobody answers and `back()` when somebody does.
export function listen({ changed, away, back }) {
  let source;
  const start = () => {
    source = new EventSource("/api/events");
    source.onopen = back;
    source.onmessage = (event) => changed(JSON.parse(event.data).version);
    source.onerror = async () => {
      const refused = source.readyState === EventSource.CLOSED;
      away(refused);
      if (refused) {
        source.close();
        setTimeout(start, 2000);
      }
    };
  };
  start();
  addEventListener("pagehide", () => source.close());
}
