import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig(({ mode }) => ({
  plugins: [svelte()],
  base: "./",
  build: {
    // The page tests' build is another one and never where the app looks for its own.
    outDir: mode === "pagetest" ? "node_modules/.cache/pagetest" : "dist",
    emptyOutDir: true,
    // The content security policy allows nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: ["safari18", "chrome130"],
    sourcemap: false,
  },
  server: { host: "127.0.0.1", port: 5183, strictPort: true },
  test: {
    include: ["src/**/*.test.ts"],
    environment: "node",
    env: { TZ: "UTC" },
  },
}));
