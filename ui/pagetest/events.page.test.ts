import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { go, stage, startBrowser } from "./browser";
import { ask, command, edit, view } from "./fixtures/asks";
import { World } from "./fixtures/world";

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

test("a gap in the events fetches everything again that is shown", async () => {
  const world = new World();
  world.asks = [ask(edit, { actionType: "file_edit" })];
  const { page, host, sent, close } = await stage(browser, world);
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  await page.waitForTimeout(300);

  world.asks = [...world.asks, ask(command, { actionType: "shell_exec" })];
  world.move(edit.ask_id, { state: "withdrawn", reason: "Its session ended." });
  host.loseOne(); // the change of each
  host.loseOne();
  const before = sent("asks").length;
  host.emit({ event: "agents_changed" });

  await page.getByText("It was taken back. Nothing was done.").waitFor();
  await expect.poll(() => page.getByRole("listbox", { name: "Waiting" }).getByRole("option").count()).toBe(1);
  expect(sent("asks").length).toBeGreaterThan(before);
  expect(sent("ask").length).toBe(2);
  await close();
});

test("without a gap only what changed is fetched", async () => {
  const { page, host, sent, close } = await stage(browser);
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  await page.waitForTimeout(300);
  const asks = sent("asks").length;
  const one = sent("ask").length;
  host.emit({ event: "agents_changed" });
  await page.waitForTimeout(300);
  expect([sent("asks").length, sent("ask").length]).toEqual([asks, one]);
  await close();
});

test("a lost last event is found when the window is looked at", async () => {
  const { page, world, host, close } = await stage(browser);
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  await page.waitForTimeout(300);
  world.move(edit.ask_id, { state: "expired" });
  host.loseOne();
  await page.evaluate(() => window.dispatchEvent(new Event("focus")));
  await page.getByText("Nobody decided in time").waitFor();
  await close();
});

test("the tray and notifications lead to an ask", async () => {
  const { page, host, close } = await stage(browser);
  await go(page, 4);
  host.emit({ event: "show_ask", ask_id: view.ask_id });
  await page.locator(`[data-ask="${view.ask_id}"]`).waitFor();
  await page.getByText("is gone; a yes waits until it comes back").waitFor();
  await close();
});

test("a flood of events doesn't become a flood of requests", async () => {
  const { page, host, sent, close } = await stage(browser);
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  const before = sent("asks").length;
  for (let n = 0; n < 300; n += 1) host.emit({ event: "ask_changed", ask_id: edit.ask_id });
  await page.waitForTimeout(1_000);
  expect(sent("asks").length - before).toBeLessThan(100);
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  await close();
});

test("stop all acts at once; resuming is an ask", async () => {
  const { page, host, sent, close } = await stage(browser);
  await page.getByRole("button", { name: /^Stop all/ }).click();
  await expect.poll(() => sent("stop_all").length).toBe(1);
  host.emit({ event: "stopped_changed", stopped: true });
  await page.getByText("Everything is stopped.").waitFor();
  await page.getByRole("button", { name: "Resume…" }).click();
  await expect.poll(() => sent("propose")).toEqual([{ change: { change: "resume" } }]);
  await page.locator('[data-ask="a_01KB00000000000000000CHANGE"]').waitFor();
  await close();
});

test("apr_09 what a crash cut off is said plainly until it is understood", async () => {
  const world = new World();
  world.interrupted = ["A command of claude in website was cut off while it ran: npm run build."];
  const { page, host, sent, close } = await stage(browser, world);
  const banner = page.getByText("Nothing was repeated.");
  await banner.waitFor();
  await page.getByText("npm run build.").first().waitFor();
  await page.getByRole("button", { name: "Understood" }).click();
  await expect.poll(() => sent("acknowledge_interrupted").length).toBe(1);
  host.emit({ event: "stopped_changed", stopped: false });
  await banner.waitFor({ state: "detached" });
  // The supervisor remembers that it was read, not this page.
  await page.reload();
  await page.getByRole("main").waitFor();
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  expect(await banner.count()).toBe(0);
  await close();
});

test("apr_09 what a crash cut off stays while the supervisor doesn't know that it was read", async () => {
  const world = new World();
  world.interrupted = ["A command of claude in website was cut off while it ran: npm run build."];
  world.faults.set("acknowledge_interrupted", { code: "internal", message: "That couldn’t be noted." });
  const { page, sent, close } = await stage(browser, world);
  await page.getByRole("button", { name: "Understood" }).click();
  await page.getByText("That couldn’t be noted.").waitFor();
  await page.getByText("Nothing was repeated.").waitFor();
  world.faults.clear();
  await page.getByRole("button", { name: "Understood" }).click();
  await expect.poll(() => sent("acknowledge_interrupted").length).toBe(2);
  await page.getByText("That couldn’t be noted.").waitFor({ state: "detached" });
  await close();
});

test("a fault is shown with what to do, and trying again works", async () => {
  const world = new World();
  world.faults.set("asks", {
    code: "storage_failure",
    message: "The log can’t be read.",
    hint: "Free some space on the disk.",
  });
  const { page, close } = await stage(browser, world);
  await page.getByText("The log can’t be read.").waitFor();
  await page.getByText("Free some space on the disk.").waitFor();
  world.faults.clear();
  await page.getByRole("button", { name: "Try again" }).first().click();
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  await close();
});
