import { defineConfig } from "vitest/config";
import { xtermWithoutInlineStyles } from "./xterm-without-inline-styles.ts";

// Everything is served from one place on one machine: hashed names, no source maps, nothing from elsewhere.
export default defineConfig({
  plugins: [xtermWithoutInlineStyles],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/perdure/web_dist",
    emptyOutDir: true,
    target: "es2022",
    // A font or an image as a data: address would need a hole in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // Nothing is measured by the time that a test takes: a machine may have much else to do.
  test: { include: ["tests/**/*.test.ts"], environment: "node", testTimeout: 60_000, hookTimeout: 60_000 },
});
