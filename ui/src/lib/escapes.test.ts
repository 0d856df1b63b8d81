import { describe, expect, test } from "vitest";

import { describeEscapes, linesOf, segments } from "./escapes";

const kinds = (line: string) => segments(line).map(({ kind, text }) => `${kind}:${text}`);

describe("escapes", () => {
  test("dsp_01 each escape is marked, neighbours together", () => {
    expect(kinds("echo o\\u{200b}k\\u{2060}\\u{2063}; x")).toEqual([
      "text:echo o",
      "escape:\\u{200b}",
      "text:k",
      "escape:\\u{2060}\\u{2063}",
      "text:; x",
    ]);
  });

  test("what only looks like an escape is plain text", () => {
    for (const line of ["\\u{}", "\\u{xyz}", "\\u{1234567}", "\\u{200B}", "u{200b}", "\\n", "C:\\users"]) {
      expect(kinds(line)).toEqual([`text:${line}`]);
    }
  });

  test("tabs and trailing spaces are marked, spaces inside are not", () => {
    expect(kinds("\ta b  ")).toEqual(["tab:\t", "text:a b", "trail:  "]);
    expect(kinds("   ")).toEqual(["trail:   "]);
  });

  test("dsp the parts joined are exactly the text", () => {
    const alphabet = ["\\u{202e}", "\\u{5c}u{200b}", " ", "\t", "a", "\\", "{", "}", "<b>", "é", "𝒳"];
    let seed = 7;
    const next = () => (seed = (seed * 48_271) % 2_147_483_647);
    for (let round = 0; round < 500; round += 1) {
      const line = Array.from({ length: next() % 12 }, () => alphabet[next() % alphabet.length]).join("");
      const joined = segments(line)
        .map((part) => part.text)
        .join("");
      expect(joined).toBe(line);
    }
  });

  test("lines keep their newline", () => {
    expect(linesOf("a\n\nb")).toEqual(["a\n", "\n", "b"]);
    expect(linesOf("a\n")).toEqual(["a\n"]);
    expect(linesOf("")).toEqual([""]);
  });

  test("a tooltip names what is hidden", () => {
    expect(describeEscapes("\\u{200b}\\u{202e}\\u{e000}")).toBe(
      "U+200B zero width space, U+202E right-to-left override, U+E000",
    );
  });
});
