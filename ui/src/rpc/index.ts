import { createCall } from "./client";
import { transport } from "./transport";
import type { Digest, UiEvent } from "./generated";

export { RpcFault } from "./client";
export { SequenceWatch } from "./sequence";
export type * from "./generated";

export const call = createCall(transport);
export const listen = (handler: (event: UiEvent) => void): Promise<() => void> => transport.listen(handler);
export const blobUrl = (digest: Digest): string => transport.blobUrl(digest);
