import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["**/*.page.test.ts"],
    environment: "node",
    env: { TZ: "UTC" },
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Each file starts a browser; two at a time are enough for a small machine.
    maxWorkers: 2,
  },
});
