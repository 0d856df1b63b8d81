import { join } from "node:path";

import { chromium, type Browser, type Page } from "playwright-core";

import { World } from "./fixtures/world";
import { PICTURE } from "./fixtures/traces";
import { startHost } from "./host.mjs";

export const DIST = join(import.meta.dirname, "../node_modules/.cache/pagetest");

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: FLAGS,
  });
}

export interface Look {
  width?: number;
  height?: number;
  theme?: "light" | "dark";
}

export interface Stage {
  page: Page;
  world: World;
  host: Awaited<ReturnType<typeof startHost>>;
  /** What the page complained about: errors, refused content, uncaught exceptions. */
  complaints: string[];
  /** The parameters of each request of a method so far. */
  sent(method: string): unknown[];
  close(): Promise<void>;
}

/** A page at a scripted host. */
export async function stage(browser: Browser, world = new World(), look: Look = {}): Promise<Stage> {
  const host = await startHost({
    dist: DIST,
    script: (request) => world.answer(request),
    blob: () => PICTURE,
  });
  world.lastEvent = host.lastEvent;
  const { width = 1180, height = 760, theme = "light" } = look;
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: "reduce",
    timezoneId: "UTC",
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => complaints.push(`dialog: ${dialog.message()}`));
  await page.goto(host.url);
  await page.getByRole("main").waitFor();
  return {
    page,
    world,
    host,
    complaints,
    sent: (method) =>
      host.requests
        .filter((request) => request.method === method)
        .map((request) => ("params" in request ? request.params : undefined)),
    async close() {
      await context.close();
      await host.stop();
    },
  };
}

/** Goes to a page by the keyboard. */
export async function go(page: Page, number: 1 | 2 | 3 | 4 | 5): Promise<void> {
  await page.keyboard.press(`Control+${number}`);
  await page.locator(`nav li:nth-child(${number}) button[aria-current="page"]`).waitFor();
}
