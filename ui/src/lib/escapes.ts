// Text arrives escaped: what can't be seen stands there as `\u{hex}`, and a backslash that would begin
// such an escape in the text itself as `\u{5c}`. So each match is an escape, and nothing is decoded here.

export type SegmentKind = "text" | "escape" | "tab" | "trail";

export interface Segment {
  kind: SegmentKind;
  text: string;
}

const MARKS = /((?:\\u\{[0-9a-f]{1,6}\})+)|(\t+)|([ ]+$)/g;

/** Splits one line into what is drawn plainly and what is marked. The parts joined are the line. */
export function segments(line: string): Segment[] {
  const parts: Segment[] = [];
  let at = 0;
  for (const match of line.matchAll(MARKS)) {
    if (match.index > at) parts.push({ kind: "text", text: line.slice(at, match.index) });
    const kind = match[1] !== undefined ? "escape" : match[2] !== undefined ? "tab" : "trail";
    parts.push({ kind, text: match[0] });
    at = match.index + match[0].length;
  }
  if (at < line.length) parts.push({ kind: "text", text: line.slice(at) });
  return parts;
}

/** Lines with their newline still at the end, so that joined they are the text. */
export function linesOf(text: string): string[] {
  if (text === "") return [""];
  const lines = text.split(/(?<=\n)/);
  return lines;
}

const NAMES: Record<string, string> = {
  "0": "null",
  "7": "bell",
  "8": "backspace",
  a: "newline",
  d: "carriage return",
  "1b": "escape",
  "5c": "backslash",
  "7f": "delete",
  "9": "tab",
  a0: "no-break space",
  ad: "soft hyphen",
  "200b": "zero width space",
  "200c": "zero width non-joiner",
  "200d": "zero width joiner",
  "200e": "left-to-right mark",
  "200f": "right-to-left mark",
  "2028": "line separator",
  "2029": "paragraph separator",
  "202a": "left-to-right embedding",
  "202b": "right-to-left embedding",
  "202c": "pop directional formatting",
  "202d": "left-to-right override",
  "202e": "right-to-left override",
  "2060": "word joiner",
  "2063": "invisible separator",
  "2066": "left-to-right isolate",
  "2067": "right-to-left isolate",
  "2068": "first strong isolate",
  "2069": "pop directional isolate",
  "202f": "narrow no-break space",
  "3000": "ideographic space",
  feff: "zero width no-break space",
};

/** What escapes stand for, for a tooltip: `U+200B zero width space`. */
export function describeEscapes(text: string): string {
  const shown = [...text.matchAll(/\\u\{([0-9a-f]{1,6})\}/g)].slice(0, 8).map((match) => {
    const hex = match[1] ?? "";
    const name = NAMES[hex];
    return `U+${hex.toUpperCase().padStart(4, "0")}${name ? ` ${name}` : ""}`;
  });
  return shown.join(", ");
}
