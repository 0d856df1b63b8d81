import type { ActionType, AskState, OutcomeStatus, ReplayOf, TraceOutcome } from "../rpc";

/** `1 line`, `1,204 lines`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}

/** What a trace replays: `Replay of 01KB…, acts 2 to 5`. */
export function replayWords(of: ReplayOf): string {
  const acts = of.from_edge === of.to_edge ? `act ${of.from_edge}` : `acts ${of.from_edge} to ${of.to_edge}`;
  return `Replay of ${of.trace_id}, ${acts}`;
}

export type Tone = "neutral" | "accent" | "ok" | "warn" | "danger";

interface Worded {
  word: string;
  tone: Tone;
  /** What it means for the person, in a sentence. */
  means: string;
}

const ASK: Record<AskState, Worded> = {
  open: { word: "Waiting", tone: "accent", means: "It waits for you." },
  approved: { word: "Approved", tone: "ok", means: "You said yes; the agent hasn't come back for it yet." },
  denied: { word: "Denied", tone: "neutral", means: "You said no. Nothing was done." },
  expired: {
    word: "Expired",
    tone: "neutral",
    means: "Nobody decided in time, which is a no. Nothing was done.",
  },
  withdrawn: { word: "Withdrawn", tone: "neutral", means: "It was taken back. Nothing was done." },
  superseded: {
    word: "Replaced",
    tone: "neutral",
    means: "Another request took its place. Nothing was done.",
  },
  claimed: { word: "Approved", tone: "ok", means: "You said yes, and it is about to run." },
  executing: { word: "Running", tone: "accent", means: "You said yes, and it runs now." },
  done: {
    word: "Done",
    tone: "ok",
    means: "You said yes, and it was carried out. The trace has the outcome.",
  },
  interrupted: {
    word: "Interrupted",
    tone: "warn",
    means: "It was cut off while it ran. What it had done by then is done; it is not repeated.",
  },
};

export const askWord = (state: AskState): Worded => ASK[state];

const OUTCOME: Record<OutcomeStatus, { word: string; tone: Tone }> = {
  success: { word: "Done", tone: "ok" },
  partial: { word: "Partly", tone: "warn" },
  failure: { word: "Failed", tone: "danger" },
  blocked: { word: "Refused", tone: "warn" },
  timeout: { word: "Timed out", tone: "danger" },
};

export const outcomeWord = (status: OutcomeStatus | undefined): { word: string; tone: Tone } =>
  status ? OUTCOME[status] : { word: "Running", tone: "accent" };

const TRACE: Record<TraceOutcome, { word: string; tone: Tone }> = {
  success: { word: "Done", tone: "ok" },
  partial: { word: "Partly", tone: "warn" },
  failure: { word: "Failed", tone: "danger" },
  aborted: { word: "Cut off", tone: "warn" },
};

export const traceWord = (outcome: TraceOutcome | undefined): { word: string; tone: Tone } =>
  outcome ? TRACE[outcome] : { word: "Running", tone: "accent" };

const ACTION: Record<ActionType, string> = {
  shell_exec: "Command",
  file_read: "Read file",
  file_write: "Write file",
  file_edit: "Edit file",
  file_delete: "Delete file",
  keyboard_input: "Typing",
  mouse_click: "Click",
  mouse_drag: "Drag",
  screen_capture: "Screenshot",
  process_spawn: "Start program",
  process_signal: "Signal",
};

export const actionWord = (type: ActionType): string => ACTION[type];
