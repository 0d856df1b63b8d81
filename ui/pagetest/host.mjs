// @ts-check
// A scripted stand-in for the shell, on loopback, for page tests. It never ships: the app's own build has
// no transport that could reach it.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";

/** @typedef {import("../src/rpc/generated").UiRequest} UiRequest */
/** @typedef {import("../src/rpc/generated").UiReply} UiReply */
/** @typedef {import("../src/rpc/generated").UiEvent} UiEvent */
/** @typedef {UiEvent extends infer E ? E extends UiEvent ? Omit<E, "seq"> : never : never} UiEventKind */
/** @typedef {(request: UiRequest) => UiReply | Promise<UiReply>} Script */

/** What the app allows its page, but for the address of the events. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const TYPES = new Map([
  [".html", "text/html; charset=utf-8"],
  [".js", "text/javascript"],
  [".css", "text/css"],
  [".svg", "image/svg+xml"],
]);

/**
 * Starts it on a free port.
 * @param {{ dist: string, script: Script, blob?: (hex: string) => string | undefined }} options
 */
export async function startHost({ dist, script, blob }) {
  /** @type {Set<import("node:http").ServerResponse>} */
  const listeners = new Set();
  /** @type {UiRequest[]} */
  const requests = [];
  let seq = 0;

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async function answer(request, response) {
    const path = new URL(request.url ?? "/", "http://host").pathname;
    response.setHeader("Content-Security-Policy", CONTENT_SECURITY_POLICY);
    response.setHeader("Cache-Control", "no-store");
    if (path === "/pagetest-rpc") {
      /** @type {Buffer[]} */
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      /** @type {UiRequest} */
      const parsed = JSON.parse(Buffer.concat(chunks).toString("utf8"));
      requests.push(parsed);
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify(await script(parsed)));
    } else if (path === "/pagetest-events") {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write(":\n\n");
      listeners.add(response);
      response.on("close", () => listeners.delete(response));
    } else if (path.startsWith("/pagetest-blob/")) {
      const svg = blob?.(path.slice("/pagetest-blob/".length));
      response.writeHead(svg ? 200 : 404, { "Content-Type": "image/svg+xml" });
      response.end(svg);
    } else {
      await file(path, response);
    }
  }

  /** @param {string} path @param {import("node:http").ServerResponse} response */
  async function file(path, response) {
    const name = normalize(path === "/" ? "/index.html" : path);
    try {
      const body = await readFile(join(dist, name));
      response.writeHead(200, { "Content-Type": TYPES.get(extname(name)) ?? "application/octet-stream" });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      response.writeHead(500).end(String(error));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");

  return {
    url: `http://127.0.0.1:${address.port}/`,
    requests,
    /** The number of the last event. */
    lastEvent: () => seq,
    /** Sends an event to every page. @param {UiEventKind} event */
    emit(event) {
      seq += 1;
      const data = `data: ${JSON.stringify({ seq, ...event })}\n\n`;
      for (const listener of listeners) listener.write(data);
    },
    /** Counts an event that no page gets. */
    loseOne() {
      seq += 1;
    },
    async stop() {
      for (const listener of listeners) listener.end();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
