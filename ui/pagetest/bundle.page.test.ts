// What ships: no way to a test host, nothing inline, nothing from elsewhere.
import { join } from "node:path";

import { build, type Rollup } from "vite";
import { beforeAll, expect, test } from "vitest";

let files: Map<string, string>;
beforeAll(async () => {
  const root = join(import.meta.dirname, "..");
  const built = (await build({
    root,
    mode: "production",
    logLevel: "silent",
    build: { write: false },
  })) as Rollup.RollupOutput;
  files = new Map(
    built.output.map((file) => [file.fileName, String(file.type === "chunk" ? file.code : file.source)]),
  );
});

test("the shipped page can't reach a test host", () => {
  expect([...files.keys()].filter((name) => name.endsWith(".js"))).not.toEqual([]);
  for (const [name, text] of files) expect(text, name).not.toMatch(/pagetest|EventSource/);
});

test("nothing is inline, so that the content security policy can forbid it", () => {
  const page = files.get("index.html") ?? "";
  expect(page).toContain('type="module"');
  expect(page).not.toMatch(/<style|style=|\son[a-z]+=|<script(?![^>]*\ssrc=)/i);
  for (const [name, text] of files) expect(text, name).not.toContain("data:image");
});

test("nothing comes from elsewhere", () => {
  for (const [name, text] of files) {
    const addresses = text.match(/https?:\/\/[^\s"'`)\\]+/g) ?? [];
    const foreign = addresses.filter(
      // Namespaces, and the pages that Svelte's own error messages name.
      (address) => !/^https?:\/\/(www\.w3\.org|svelte\.dev)\//.test(address),
    );
    expect(foreign, name).toEqual([]);
  }
});
