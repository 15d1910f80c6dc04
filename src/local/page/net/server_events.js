/** Server-sent events read with fetch, which can send a token; EventSource cannot. */

/** Give each event of a response's body to `heard` as soon as it is whole; returns when the body ends.
 * @param {Response} response @param {(event: {id: string, name: string, data: string}) => void} heard
 * @param {() => void} [alive] is called for whatever comes, comments too */
export async function readEvents(response, heard, alive = () => {}) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser(heard);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    parser.feed(decoder.decode(value, { stream: true }));
  }
}

/** The format, line by line. */
export class EventParser {
  constructor(heard) {
    this.heard = heard;
    this.rest = "";
    this.clear();
  }

  clear() {
    this.id = "";
    this.name = "message";
    this.data = [];
  }

  /** Take in a piece of the stream, of any length. */
  feed(piece) {
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop();
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  line(line) {
    if (line === "") {
      if (this.data.length) this.heard({ id: this.id, name: this.name, data: this.data.join("\n") });
      this.clear();
      return;
    }
    const [, field, value] = /^([^:]*):? ?([^]*)$/.exec(line);
    if (field === "id") this.id = value;
    else if (field === "event") this.name = value;
    else if (field === "data") this.data.push(value);
  }
}
