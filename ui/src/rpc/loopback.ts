// For page tests only: the same requests over HTTP to a scripted host.
import { digestHex } from "../lib/digest";
import type { UiEvent, UiReply } from "./generated";
import type { Transport } from "./transport";

export function loopbackTransport(): Transport {
  return {
    async request(request) {
      const response = await fetch("/pagetest-rpc", { method: "POST", body: JSON.stringify(request) });
      if (!response.ok) throw new Error(`the host answered ${response.status}`);
      return (await response.json()) as UiReply;
    },
    listen(handler) {
      return new Promise((resolve) => {
        const source = new EventSource("/pagetest-events");
        source.onmessage = (message: MessageEvent<string>) => handler(JSON.parse(message.data) as UiEvent);
        source.onopen = () => resolve(() => source.close());
      });
    },
    blobUrl: (digest) => `/pagetest-blob/${digestHex(digest)}`,
  };
}
