import { convertFileSrc, invoke } from "@tauri-apps/api/core";
import { listen } from "@tauri-apps/api/event";

import { digestHex } from "../lib/digest";
import type { UiEvent, UiReply } from "./generated";
import type { Transport } from "./transport";

const COMMAND = "rpc";
const EVENT = "bodyguard://event";
/** The shell's scheme for pictures; browsers keep `blob:` for themselves. */
const BLOB_SCHEME = "bgblob";

export function tauriTransport(): Transport {
  return {
    request: (request) => invoke<UiReply>(COMMAND, { request }),
    listen: (handler) => listen<UiEvent>(EVENT, (event) => handler(event.payload)),
    blobUrl: (digest) => convertFileSrc(digestHex(digest), BLOB_SCHEME),
  };
}
