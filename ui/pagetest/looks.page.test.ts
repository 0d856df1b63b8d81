// Each page in both themes and at the smallest size: no accessibility fault, no complaint, nothing cut off.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import type { AxeResults } from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { go, stage, startBrowser } from "./browser";
import { ask, hostile } from "./fixtures/asks";
import { DENIED } from "./fixtures/traces";
import { World } from "./fixtures/world";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = ["approvals", "live", "traces", "agents", "settings"] as const;

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

async function faults(page: Page): Promise<string[]> {
  await page.evaluate(AXE); // as the debugger; the page itself allows no foreign script
  const results = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<AxeResults> } };
    return axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
  });
  return results.violations.map(
    (found) => `${found.id}: ${found.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`,
  );
}

async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

describe.each([
  { theme: "light", width: 1180, height: 760 },
  { theme: "dark", width: 1180, height: 760 },
  { theme: "light", width: 640, height: 400 },
  { theme: "dark", width: 640, height: 400 },
] as const)("$theme, $width×$height", (look) => {
  test("every page", async () => {
    const world = new World();
    world.asks = [ask(hostile, { actionType: "shell_exec" }), ...world.asks];
    world.interrupted = ["A command of claude in website was cut off while it ran."];
    const { page, complaints, close } = await stage(browser, world, look);
    const check = async (name: string) => {
      await page.waitForTimeout(200);
      expect(complaints, name).toEqual([]);
      expect(await faults(page), name).toEqual([]);
      expect(await overflow(page), name).toBe(0);
    };
    for (const [index, name] of PAGES.entries()) {
      await go(page, (index + 1) as 1 | 2 | 3 | 4 | 5);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await check(name);
    }
    await go(page, 3);
    await page.getByRole("option").first().click();
    await page.getByText("Authorization").waitFor();
    await check("trace");
    if (look.width < 800) await page.getByRole("button", { name: /^All .* acts/ }).click();
    await page
      .getByRole("option")
      .nth(DENIED - 1)
      .click();
    await page.getByRole("heading", { name: "Refused" }).waitFor();
    await check("refused act");
    await close();
  });

  test("nothing there yet: each page says what to do next", async () => {
    const { page, close } = await stage(browser, World.empty(), look);
    for (const [number, words] of [
      [1, "Nothing waits for you"],
      [2, "No sessions yet"],
      [3, "No traces yet"],
      [4, "First, a workspace"],
    ] as const) {
      await go(page, number);
      if (!(number === 1 && look.width < 800)) await page.getByRole("heading", { name: words }).waitFor();
    }
    expect(await faults(page)).toEqual([]);
    await close();
  });
});

test("the theme can be chosen, and stays", async () => {
  const { page, close } = await stage(browser, new World(), { theme: "light" });
  await go(page, 5);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByLabel("Dark").check();
  expect(await ground()).not.toBe(light);
  await page.reload();
  await page.getByRole("main").waitFor();
  expect(await ground()).not.toBe(light);
  await close();
});
