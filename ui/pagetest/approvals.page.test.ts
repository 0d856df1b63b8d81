import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { go, stage, startBrowser } from "./browser";
import { ask, command, edit, hostile, long } from "./fixtures/asks";
import { TRACE_ID } from "./fixtures/traces";
import { World } from "./fixtures/world";

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

const scrollToEnd = (page: Page) =>
  page.locator("[data-decision]").evaluate((node) => (node.scrollTop = node.scrollHeight));
const settle = (page: Page) => page.waitForTimeout(250);
const only = (...views: Parameters<typeof ask>[0][]) => {
  const world = new World();
  world.asks = views.map((view) => ask(view, { actionType: "shell_exec" }));
  return world;
};

test("apr_02 the oldest is shown first, its end is told once seen, and leaving lowers the bar", async () => {
  const { page, world, sent, close } = await stage(browser, new World(), { width: 640, height: 400 });
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  await settle(page);
  const shown = { ask_id: edit.ask_id, shown_digest: world.asks[0]?.detail.shown_digest };
  expect(sent("ask_shown")).toEqual([{ ...shown, end_shown: false }]);
  await page.getByText("Scroll to the end first.").waitFor();

  await scrollToEnd(page);
  await expect.poll(() => sent("ask_shown").at(-1)).toEqual({ ...shown, end_shown: true });
  expect(sent("ask_shown")).toHaveLength(2);

  await go(page, 2);
  await expect.poll(() => sent("ask_hidden").length).toBe(1);
  await close();
});

test("what fits is seen to its end at once", async () => {
  const { page, sent, close } = await stage(browser, only(command));
  await page.getByText("Approve or deny with the bar below; this page cannot.").waitFor();
  await expect.poll(() => sent("ask_shown").at(-1)).toMatchObject({ end_shown: true });
  await close();
});

test("dsp_06 nothing to the right stays unseen: without wrapping, the right end must be seen too", async () => {
  const { page, sent, close } = await stage(browser, only(long), { width: 640, height: 400 });
  await page.getByRole("button", { name: "Don’t wrap" }).click();
  await settle(page);
  await scrollToEnd(page);
  await settle(page);
  expect(sent("ask_shown").at(-1)).toMatchObject({ end_shown: false });
  await page
    .getByRole("region", { name: "Command, exact text" })
    .evaluate((node) => (node.scrollLeft = node.scrollWidth));
  await expect.poll(() => sent("ask_shown").at(-1)).toMatchObject({ end_shown: true });
  await close();
});

test("dsp_06 wrapping again at the end doesn't count as having seen it", async () => {
  const world = only({
    ...long,
    contents: [
      {
        type: "text",
        label: "Command",
        text: `: ${"x".repeat(20_000)} ; touch ran`,
        bytes: 20_013,
        lines: 1,
      },
    ],
  });
  const { page, sent, close } = await stage(browser, world, { width: 640, height: 400 });
  await page.getByRole("button", { name: "Don’t wrap" }).click();
  await scrollToEnd(page);
  await settle(page);
  await page.getByRole("button", { name: "Wrap lines" }).click();
  await settle(page);
  expect(sent("ask_shown").at(-1)).toMatchObject({ end_shown: false });
  await scrollToEnd(page);
  await expect.poll(() => sent("ask_shown").at(-1)).toMatchObject({ end_shown: true });
  await close();
});

test("dsp_01 dsp_04 hostile text is text, whole, with its escapes marked", async () => {
  const { page, complaints, close } = await stage(browser, only(hostile));
  await page.locator(`[data-ask="${hostile.ask_id}"]`).waitFor();
  const content = hostile.contents[0];
  expect(content?.type === "text" && content.text).toBe(await page.locator("[data-exact]").textContent());
  expect(await page.locator("[data-ask] h2").textContent()).toBe(hostile.headline);
  expect(await page.locator("[data-ask] blockquote").textContent()).toBe(hostile.agent_words);
  expect(await page.locator("[data-exact] mark").allTextContents()).toEqual([
    "\\u{200b}",
    "\\u{2060}",
    "\\u{2063}",
  ]);
  await page.getByRole("heading", { name: "The agent says (not checked)" }).waitFor();
  expect(await page.locator("main img, main script, main [href], main h1:has-text('Approved')").count()).toBe(
    0,
  );
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  expect(complaints).toEqual([]);
  await close();
});

test("dsp_07 400 lines of 300 columns: every character is within the view's width or wrapped into it", async () => {
  const { page, close } = await stage(browser, only(long), { width: 640, height: 400 });
  const exact = page.locator("[data-exact]");
  await exact.waitFor();
  const content = long.contents[0];
  expect(await exact.textContent()).toBe(content?.type === "text" ? content.text : "");
  expect(await exact.evaluate((node) => node.scrollWidth - node.clientWidth)).toBe(0);
  expect(await page.locator("[data-decision]").evaluate((node) => node.scrollWidth - node.clientWidth)).toBe(
    0,
  );
  await close();
});

test("dsp_07 text at twice its size in the smallest window: the end can be reached and counts", async () => {
  const world = only(long);
  world.stopped = true;
  const { page, sent, close } = await stage(browser, world, { width: 320, height: 200 });
  await page.locator("[data-exact]").waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  await page.getByText("End of the request").scrollIntoViewIfNeeded();
  await expect.poll(() => sent("ask_shown").at(-1)).toMatchObject({ end_shown: true });
  await close();
});

test("dsp a diff shows every line with its sign and numbers", async () => {
  const { page, close } = await stage(browser, only(edit));
  const content = edit.contents[0];
  if (content?.type !== "diff") throw new Error("no diff");
  const text = page.locator("[data-exact-diff] .text");
  expect(await text.allTextContents()).toEqual(
    content.lines.filter((line) => line.kind !== "gap").map((line) => line.text),
  );
  expect(await page.locator(".line.removed .number").first().getAttribute("data-number")).toBe("43");
  expect(await page.locator(".line.added .sign").first().getAttribute("data-sign")).toBe("+");
  await close();
});

test("apr_02 what is shown is never swapped while it is open; its end shows what came of it", async () => {
  const { page, world, host, sent, close } = await stage(browser, only(edit));
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();

  world.asks = [...world.asks, ask(command, { actionType: "shell_exec" })];
  host.emit({ event: "ask_changed", ask_id: command.ask_id });
  await expect.poll(() => page.getByRole("listbox", { name: "Waiting" }).getByRole("option").count()).toBe(2);
  expect(await page.locator("[data-announcement]").textContent()).toBe(`New request: ${command.headline}`);
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();

  world.move(edit.ask_id, { state: "denied", reason: "Not on a <b>Friday</b>" });
  host.emit({ event: "ask_changed", ask_id: edit.ask_id });
  await page.getByText("You said no. Nothing was done.").waitFor();
  await page.getByText("Not on a <b>Friday</b>").first().waitFor();
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  await expect.poll(() => sent("ask_hidden").length).toBe(1);

  await page.locator("[data-next]").click();
  await page.locator(`[data-ask="${command.ask_id}"]`).waitFor();
  await expect.poll(() => sent("ask_shown").at(-1)).toMatchObject({ ask_id: command.ask_id });
  await close();
});

test("apr_03 lapsing is worded otherwise than a denial", async () => {
  const { page, world, host, close } = await stage(browser, only(edit));
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  world.move(edit.ask_id, { state: "expired" });
  host.emit({ event: "ask_changed", ask_id: edit.ask_id });
  await page.getByText("Nobody decided in time, which is a no. Nothing was done.").waitFor();
  expect(await page.getByText("You said no").count()).toBe(0);
  await close();
});

test("the end of an ask leads to its act in the trace, by keyboard alone, and back", async () => {
  const { page, world, host, sent, close } = await stage(browser, only(command));
  await page.locator(`[data-ask="${command.ask_id}"]`).waitFor();
  world.move(command.ask_id, { state: "done", edge: { trace_id: TRACE_ID, edge_id: 4_001 } });
  host.emit({ event: "ask_changed", ask_id: command.ask_id });
  await page.getByRole("button", { name: "Show in trace" }).focus();
  await page.keyboard.press("Enter");

  // The act is selected and in view, far down in its trace.
  const selected = page.getByRole("listbox", { name: "Acts" }).getByRole("option", { selected: true });
  await selected.getByText("4001", { exact: true }).waitFor();
  await expect.poll(() => selected.getByText("Screenshot").count()).toBe(1);
  await expect
    .poll(async () => {
      const [row, list] = await Promise.all([
        selected.boundingBox(),
        page.getByRole("listbox", { name: "Acts" }).boundingBox(),
      ]);
      // A pixel for rounding.
      return row && list && row.y > list.y - 1 && row.y + row.height < list.y + list.height + 1;
    })
    .toBe(true);
  await expect.poll(() => sent("edge").at(-1)).toEqual({ trace_id: TRACE_ID, edge_id: 4_001 });
  expect(sent("edge")).toHaveLength(1);

  await page.keyboard.press("Escape");
  await page.getByRole("listbox", { name: "Traces" }).waitFor();
  await go(page, 1);
  await page.getByText("You said yes, and it was carried out.").waitFor();
  await close();
});

test("where only one fits, the act that an ask led to is shown, and its list around it", async () => {
  const { page, world, host, close } = await stage(browser, only(command, edit), {
    width: 640,
    height: 400,
  });
  await page.locator(`[data-ask="${command.ask_id}"]`).waitFor();
  world.move(command.ask_id, { state: "denied", edge: { trace_id: TRACE_ID, edge_id: 4_002 } });
  host.emit({ event: "ask_changed", ask_id: command.ask_id });
  // Three ways on leave the words their room.
  await page.locator("[data-next]").waitFor();
  expect((await page.getByText("You said no. Nothing was done.").boundingBox())?.width).toBeGreaterThan(190);
  await page.getByRole("button", { name: "Show in trace" }).click();
  await page.getByRole("tabpanel").getByRole("heading", { name: "Refused" }).waitFor();
  await page.getByRole("button", { name: "All 5,000 acts" }).click();
  await page.getByRole("option", { selected: true }).getByText("4002", { exact: true }).waitFor();
  await close();
});

test("r36 an ask of a replay says which recorded act it repeats", async () => {
  const replayed = { ...command, replays: { trace_id: TRACE_ID, edge_id: 3 } };
  const { page, close } = await stage(browser, only(replayed));
  const decision = page.locator(`[data-ask="${command.ask_id}"]`);
  await decision.getByText("This repeats act 3 of the recorded trace").waitFor();
  await decision.getByText("yes of back then doesn’t count").waitFor();
  await close();
});

test("an ask that no act came of has no way to a trace", async () => {
  const { page, world, host, close } = await stage(browser, only(command));
  await page.locator(`[data-ask="${command.ask_id}"]`).waitFor();
  world.move(command.ask_id, { state: "approved" });
  host.emit({ event: "ask_changed", ask_id: command.ask_id });
  await page.getByRole("button", { name: "Show session" }).waitFor();
  expect(await page.getByRole("button", { name: "Show in trace" }).count()).toBe(0);
  await close();
});

test("the line above the bar says how the bar stands", async () => {
  const { page, host, close } = await stage(browser, only(command));
  const line = page.locator("main").getByRole("status");
  const bar = { ask_id: command.ask_id, armed: false, waiting_for: "the window is covered" };
  await line.waitFor();
  host.emit({ event: "bar_changed", bar });
  await page.getByText("The bar isn’t ready: the window is covered.").waitFor();
  host.emit({ event: "bar_changed", bar: { ...bar, refused: "Virtual core XTEST pointer" } });
  await page.getByText("A press by Virtual core XTEST pointer did not count").waitFor();
  host.emit({ event: "bar_changed", bar: { ask_id: command.ask_id, armed: true } });
  await expect.poll(() => line.textContent()).not.toContain("isn’t ready");
  // A bar that is up for another ask says nothing about this one.
  host.emit({ event: "bar_changed", bar: { ...bar, ask_id: edit.ask_id } });
  await settle(page);
  expect(await line.textContent()).not.toContain("isn’t ready");
  await close();
});

test("nothing on the page approves or denies", async () => {
  const { page, host, close } = await stage(browser, only(command));
  await page.locator(`[data-ask="${command.ask_id}"]`).waitFor();
  expect(await page.getByRole("button", { name: /approve|deny|allow/i }).count()).toBe(0);
  for (const key of ["Enter", " ", "y", "a", "Escape", "Control+Enter"]) await page.keyboard.press(key);
  await settle(page);
  const known = ["overview", "asks", "ask", "ask_shown", "ask_hidden"];
  expect(host.requests.filter((request) => !known.includes(request.method))).toEqual([]);
  await close();
});
