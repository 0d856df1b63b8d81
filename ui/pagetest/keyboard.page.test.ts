import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { go, stage, startBrowser } from "./browser";
import { command, edit } from "./fixtures/asks";

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

const title = (page: Page) => page.getByRole("heading", { level: 1 }).textContent();
const focused = (page: Page) =>
  page.evaluate(
    () => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent,
  );

test("pages by Ctrl and a number, and by g and a letter unless that is switched off", async () => {
  const { page, close } = await stage(browser);
  for (const [keys, name] of [
    [["Control+2"], "Live"],
    [["g", "t"], "Traces"],
    [["g", "n"], "Agents"],
    [["g", "s"], "Settings"],
    [["g", "a"], "Approvals"],
  ] as const) {
    for (const key of keys) await page.keyboard.press(key);
    expect(await title(page)).toBe(name);
  }
  await go(page, 5);
  await page.getByLabel("Single keys are shortcuts").uncheck();
  await page.keyboard.press("g");
  await page.keyboard.press("l");
  expect(await title(page)).toBe("Settings");
  await close();
});

test("the skip link is the first stop and leads to the content", async () => {
  const { page, close } = await stage(browser);
  await page.keyboard.press("Tab");
  expect(await focused(page)).toBe("Skip to the content");
  await page.keyboard.press("Enter");
  expect(await focused(page)).toBe("Approvals");
  await close();
});

test("a list is one stop; j, k and arrows move in it", async () => {
  const { page, sent, close } = await stage(browser);
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  const list = page.getByRole("listbox", { name: "Waiting" });
  await list.focus();
  await page.keyboard.press("j");
  await page.locator(`[data-ask="${command.ask_id}"]`).waitFor();
  const active = await list.getAttribute("aria-activedescendant");
  expect(await page.locator(`[id="${active ?? ""}"]`).getAttribute("aria-selected")).toBe("true");
  await page.keyboard.press("ArrowUp");
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  await expect.poll(() => sent("ask_shown").at(-1)).toMatchObject({ ask_id: edit.ask_id });
  await close();
});

test("every control is reached by Tab, with a ring that can be seen", async () => {
  const { page, close } = await stage(browser);
  await page.locator(`[data-ask="${edit.ask_id}"]`).waitFor();
  const seen = new Set<string>();
  for (let n = 0; n < 30; n += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const node = document.activeElement;
      if (!node || node === document.body) return undefined;
      const style = getComputedStyle(node);
      return {
        name: node.getAttribute("aria-label") ?? node.getAttribute("title") ?? node.textContent.trim(),
        ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
      };
    });
    if (!at) break;
    expect(at.ring, at.name).toBe(true);
    seen.add(at.name);
  }
  for (const name of ["Live (Ctrl+2)", "Waiting", "Decided", "The request", "Don’t wrap"])
    expect(seen).toContain(name);
  expect([...seen].some((name) => name.startsWith("Stop all"))).toBe(true);
  await close();
});

test("? shows the keys, Esc closes them, and the focus is where it was", async () => {
  const { page, close } = await stage(browser);
  const list = page.getByRole("listbox", { name: "Waiting" });
  await list.focus();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await focused(page)).toBe("Waiting");
  await close();
});

test("a trace by keyboard alone: open, move far, read, and back", async () => {
  const { page, close } = await stage(browser);
  await go(page, 3);
  await page.getByRole("listbox", { name: "Traces" }).focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await page.getByRole("listbox", { name: "Acts" }).focus();
  await page.keyboard.press("End");
  await page.getByRole("option", { selected: true }).getByText("5000").waitFor();
  expect(await page.getByRole("option").count()).toBeLessThan(60);
  await page.getByRole("tab", { name: "Act" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.getByRole("region", { name: "Recorded intent" }).waitFor();
  await page.keyboard.press("Escape");
  expect(await title(page)).toBe("Traces");
  await close();
});
