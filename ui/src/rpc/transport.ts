// How requests reach the supervisor. The app has one way, the shell; the page tests have another, which
// the constant below keeps out of what ships.
import { loopbackTransport } from "./loopback";
import { tauriTransport } from "./tauri";
import type { Digest, UiEvent, UiReply, UiRequest } from "./generated";

export interface Transport {
  /** Sends one request. Rejects only if no reply came at all. */
  request(request: UiRequest): Promise<UiReply>;
  /** Hands on every event from now on; returns how to stop. */
  listen(handler: (event: UiEvent) => void): Promise<() => void>;
  /** Where a recorded picture can be loaded from. */
  blobUrl(digest: Digest): string;
}

export const transport: Transport =
  import.meta.env.MODE === "pagetest" ? loopbackTransport() : tauriTransport();
