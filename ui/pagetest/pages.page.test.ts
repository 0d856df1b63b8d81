import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { go, stage, startBrowser } from "./browser";
import { change } from "./fixtures/asks";
import { DENIED, FORBIDDEN, OUTDATED, REASONS, REPLAY_ROW, sessions, TRACE_ID } from "./fixtures/traces";
import { World } from "./fixtures/world";

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

test("adding an agent is proposed, and its ask is shown", async () => {
  const { page, world, host, sent, close } = await stage(browser);
  await go(page, 4);
  await page.getByRole("button", { name: "Add agent" }).click();
  const submit = page.getByRole("button", { name: "Ask for it" });
  expect(await submit.isDisabled()).toBe(true);
  await page.getByLabel("Name").fill("not a name");
  await page.getByRole("checkbox", { name: /website/ }).check();
  expect(await submit.isDisabled()).toBe(true);
  await page.getByLabel("Name").fill("codex-2");
  await submit.click();
  await page.getByText("You want to add the agent codex").first().waitFor();
  expect(sent("propose")).toEqual([
    { change: { change: "add_agent", name: "codex-2", workspaces: ["website"] } },
  ]);
  expect(await page.getByRole("dialog").count()).toBe(0);

  world.move(change.ask_id, { state: "done" });
  host.emit({ event: "ask_changed", ask_id: change.ask_id });
  await page.getByText("The change is in force.").waitFor();
  await page.getByRole("button", { name: "Back to Agents" }).click();
  await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
  await close();
});

test("what the supervisor says against a proposal stays in the form", async () => {
  const world = new World();
  world.faults.set("propose", {
    code: "invalid_argument",
    message: "That folder doesn’t exist.",
    field: "root",
  });
  const { page, close } = await stage(browser, world);
  await go(page, 4);
  await page.getByRole("button", { name: "Add workspace" }).click();
  await page.getByLabel("Name").fill("site");
  await page.getByLabel("Folder").fill("/nowhere");
  await page.keyboard.press("Enter");
  await page.getByText("That folder doesn’t exist.").waitFor();
  expect(await page.getByLabel("Folder").inputValue()).toBe("/nowhere");
  await close();
});

test("a workspace is proposed with the desktop that was chosen for it", async () => {
  const { page, sent, close } = await stage(browser);
  await go(page, 4);
  await page.getByRole("button", { name: "Add workspace" }).click();
  await page.getByLabel("Name").fill("site");
  await page.getByLabel("Folder").fill("/home/mira/site");
  expect(await page.getByRole("radio", { name: /Yours/ }).isChecked()).toBe(true);
  await page.getByRole("radio", { name: /One of its own/ }).check();
  await page.getByRole("button", { name: "Ask for it" }).click();
  await expect
    .poll(() => sent("propose"))
    .toEqual([
      { change: { change: "add_workspace", name: "site", root: "/home/mira/site", desktop: "private" } },
    ]);
  await close();
});

test("other workspaces for an agent are proposed; removing it takes effect at once, after a second press", async () => {
  const { page, sent, close } = await stage(browser);
  await go(page, 4);
  await page.getByRole("option", { name: /nightly/ }).click();
  await page.getByRole("button", { name: "Change…" }).click();
  await page.getByRole("checkbox", { name: /notes/ }).check();
  await page.getByRole("button", { name: "Ask for it" }).click();
  await expect
    .poll(() => sent("propose"))
    .toEqual([{ change: { change: "assign_workspaces", agent: "nightly", workspaces: ["notes"] } }]);
  // Once it is sent the window goes to its ask; going elsewhere before would be undone by that.
  await page.getByRole("heading", { name: "Approvals", level: 1 }).waitFor();
  await go(page, 4);
  await page.getByRole("button", { name: "Remove agent…" }).click();
  expect(sent("narrow")).toEqual([]);
  await page.getByRole("button", { name: "Remove nightly" }).click();
  await expect.poll(() => sent("narrow")).toEqual([{ change: { change: "remove_agent", agent: "nightly" } }]);
  await close();
});

test("an agent is connected by copying; its token doesn't pass through the page", async () => {
  const { page, sent, close } = await stage(browser);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await go(page, 4);
  await page.getByRole("tab", { name: "Codex" }).click();
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await page.getByText("Copied.").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
    '[mcp_servers.bodyguard]\ncommand = "/usr/bin/bodyguard"\nargs = ["mcp", "--agent", "claude"]\n',
  );
  await page.getByRole("button", { name: "Copy token" }).click();
  await page.getByText("The token is on the clipboard.").waitFor();
  expect(sent("copy_token")).toEqual([{ agent: "claude" }]);
  await close();
});

test("a long list is a window: few rows are drawn, few pages fetched", async () => {
  const world = new World();
  world.traces = 100_000;
  const { page, sent, close } = await stage(browser, world);
  await go(page, 3);
  const list = page.getByRole("listbox", { name: "Traces" });
  await list.waitFor();
  await list.evaluate((node) => (node.scrollTop = node.scrollHeight / 2));
  await expect.poll(() => sent("traces").length).toBeGreaterThan(1);
  await page.locator('[aria-posinset="50010"]').getByText("@").waitFor();
  expect(await page.getByRole("option").count()).toBeLessThan(60);
  expect(sent("traces").length).toBeLessThan(6);
  await close();
});

test("r47 a replay says in the list and on its page what it replays, and leads there", async () => {
  const { page, sent, close } = await stage(browser);
  await go(page, 3);
  const row = page.getByRole("listbox", { name: "Traces" }).getByRole("option").nth(REPLAY_ROW);
  await row.getByText(`Replay of ${TRACE_ID}, acts 1 to 5`).waitFor();
  await row.click();
  await page.getByText(`Replay of ${TRACE_ID}, acts 1 to 5`).waitFor();
  expect(await page.getByText("in the agent’s words").count()).toBe(0);
  await page.getByRole("button", { name: "Open it" }).click();
  await expect.poll(() => sent("trace").at(-1)).toEqual({ trace_id: TRACE_ID });
  await close();
});

test("an act shows who allowed it, how, and what was recorded", async () => {
  const { page, close } = await stage(browser);
  await go(page, 3);
  await page.getByRole("option").first().click();
  await page.getByRole("option").nth(1).click();
  const panel = page.getByRole("tabpanel");
  await panel.getByText("a press on the decision bar by Logitech M720 Triathlon").waitFor();
  await panel.getByText("ed25519:3b9f0a6c51d2e478").waitFor();
  await page.getByRole("tab", { name: "As it was shown" }).click();
  await panel.getByRole("heading", { name: "claude wants to run a command in website" }).waitFor();
  await page.getByRole("tab", { name: "Intent (JSON)" }).click();
  expect(JSON.parse((await panel.locator("[data-exact]").textContent()) ?? "")).toMatchObject({
    kind: "intent",
  });
  await page.getByRole("tab", { name: "Outcome (JSON)" }).click();
  await expect.poll(() => panel.locator("[data-exact]").textContent()).toContain('"outcome"');
  await close();
});

/** Opens an act of the newest trace. */
async function openAct(page: Page, edge_id: number): Promise<void> {
  await go(page, 3);
  await page.getByRole("listbox", { name: "Traces" }).getByRole("option").first().click();
  await page
    .getByRole("listbox", { name: "Acts" })
    .getByRole("option")
    .nth(edge_id - 1)
    .click();
}

test.each([
  ["the person", DENIED],
  ["the policy", FORBIDDEN],
  ["what is there", OUTDATED],
])("r16 an act that %s refused says why, and claims neither a yes nor a run", async (_, edge_id) => {
  const { page, complaints, close } = await stage(browser);
  await openAct(page, edge_id);
  const panel = page.getByRole("tabpanel");
  const section = panel.locator("section").filter({ has: page.getByRole("heading", { name: "Refused" }) });
  await section.getByText("Nothing was done.").waitFor();
  expect(await section.locator("[data-reason]").textContent()).toBe(REASONS.get(edge_id));
  expect(await section.locator("mark").count()).toBe(edge_id === FORBIDDEN ? 1 : 0);
  await panel.getByText("(unchanged)").waitFor();
  expect(await panel.textContent()).not.toMatch(/Authorization|needed none|took|Failed|no outcome on record/);
  expect(complaints).toEqual([]);
  await close();
});

test("r16 what was refused has a recorded refusal, and no outcome that could still come", async () => {
  const { page, close } = await stage(browser);
  await openAct(page, FORBIDDEN);
  const panel = page.getByRole("tabpanel");
  await panel.getByRole("heading", { name: "Refused" }).waitFor();
  expect(await page.getByRole("tab", { name: "Intent (JSON)" }).count()).toBe(0);

  await page.getByRole("tab", { name: "Refusal (JSON)" }).click();
  const recorded = panel.getByRole("region", { name: "Recorded refusal" }).locator("[data-exact]");
  expect(JSON.parse((await recorded.textContent()) ?? "")).toMatchObject({ kind: "refused" });
  await panel.getByText("Record 112 of the log.", { exact: true }).waitFor();
  expect(await panel.textContent()).not.toContain("before anything ran");

  await page.getByRole("tab", { name: "Outcome (JSON)" }).click();
  await panel.getByText("Nothing ran, so there is no outcome.").waitFor();
  expect(await panel.textContent()).not.toMatch(/still runs|cut off/);

  // What ran is told as before.
  await page.getByRole("option").nth(1).click();
  await page.getByRole("tab", { name: "Intent (JSON)" }).click();
  await panel.getByText("Record 104 of the log. It was durable before anything ran.").waitFor();
  await close();
});

test("r16 what was refused before anybody was asked says so; what the person refused is shown again", async () => {
  const { page, close } = await stage(browser);
  await openAct(page, FORBIDDEN);
  const panel = page.getByRole("tabpanel");
  await page.getByRole("tab", { name: "As it was shown" }).click();
  await panel.getByRole("heading", { name: "Nobody was asked" }).waitFor();
  await panel.getByText("It was refused before that.").waitFor();
  expect(await panel.textContent()).not.toContain("allows");

  await page
    .getByRole("option")
    .nth(DENIED - 1)
    .click();
  await panel.getByRole("heading", { name: "claude wants to run a command in website" }).waitFor();

  await page.getByRole("option").nth(0).click();
  await panel.getByText("The policy allows this without a question.").waitFor();
  await close();
});

test("r16 lists of acts tell by a word and a mark what was refused, and give it no duration", async () => {
  const { page, close } = await stage(browser);
  const check = async (list: string) => {
    const rows = page.getByRole("listbox", { name: list }).getByRole("option");
    for (const [text, refused] of [
      ["curl -s https://example.com/install", true],
      ["../.ssh/config", true],
      ["make deploy", true],
      ["npm test --", false],
      ["src/routes/checkout.ts, +6", false],
    ] as const) {
      const row = rows.filter({ hasText: text }).first();
      await row.waitFor();
      expect(await row.getByText("Refused", { exact: true }).count(), text).toBe(refused ? 1 : 0);
      expect(await row.locator("svg").count(), text).toBe(refused ? 1 : 0);
      expect(/\d (ms|s)\b/.test((await row.textContent()) ?? ""), text).toBe(!refused);
    }
  };
  await go(page, 2);
  await check("Latest acts");
  await openAct(page, 1);
  await check("Acts");
  await close();
});

test("r16 counts of acts don't say that what was refused was carried out", async () => {
  const { page, close } = await stage(browser);
  await go(page, 3);
  const first = page.getByRole("listbox", { name: "Traces" }).getByRole("option").first();
  expect(await first.textContent()).toMatch(
    /5000\s*acts, carried out or refused\s*2000\s*destructive, carried out/,
  );
  await first.click();
  await page.getByText("5,000 acts, 2,000 destructive ones carried out").waitFor();
  await close();
});

test("verifying says what holds, and what doesn't, the first first", async () => {
  const { page, world, close } = await stage(browser);
  await go(page, 3);
  await page.getByRole("button", { name: "Verify log" }).click();
  await page.getByText("The log is whole.").waitFor();
  await page.getByText("any program of your account could ask for it").waitFor();
  world.verify = {
    ...world.verify,
    ok: false,
    problems: ["record 17: was changed", "record 18: follows it"],
  };
  await page.getByRole("button", { name: "Verify log" }).click();
  await page.getByText("The log does not hold.").waitFor();
  await page.getByText("record 17: was changed").waitFor();
  await close();
});

test("live follows its session: picture, place, acts as they happen", async () => {
  const { page, host, sent, close } = await stage(browser);
  await go(page, 2);
  const picture = page.getByRole("img", { name: "What claude last saw of the screen" });
  await picture.waitFor();
  await expect.poll(() => picture.evaluate((node: HTMLImageElement) => node.naturalWidth)).toBe(1920);
  await page.getByText("fix/rounding").waitFor();
  const before = sent("live").length;
  const session = sessions[0];
  if (!session) throw new Error("no session");
  host.emit({ event: "session_changed", session_id: session.session_id });
  await expect.poll(() => sent("live").length).toBe(before + 1);
  host.emit({ event: "session_changed", session_id: "s_another" });
  await page.waitForTimeout(200);
  expect(sent("live").length).toBe(before + 1);
  await close();
});

test("settings: what is wrong comes first; a device is added by an ask and removed at once", async () => {
  const { page, sent, close } = await stage(browser);
  await go(page, 5);
  await page.getByText("notes.cedar:12:5: unexpected token").waitFor();
  await page.getByText("seven quiet herons").waitFor();
  expect(await page.locator("section[aria-labelledby=health] li").first().textContent()).toContain(
    "No notification",
  );
  await page.getByRole("button", { name: "Remove Logitech M720 Triathlon" }).click();
  await expect
    .poll(() => sent("narrow"))
    .toEqual([{ change: { change: "remove_device", device: "Logitech M720 Triathlon" } }]);
  await page.getByRole("button", { name: "Add Wacom Intuos S Pen" }).click();
  await expect
    .poll(() => sent("propose"))
    .toEqual([{ change: { change: "enrol_device", device: "Wacom Intuos S Pen" } }]);
  await close();
});
