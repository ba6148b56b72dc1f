import { defineConfig } from "vite";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { namer } from "./src/build/naming.ts";

// Names of files come from their contents, so that a server may let browsers
// keep them for ever. Nothing is put inline: the page's policy forbids it.
export default defineConfig({
  plugins: [svelte({ preprocess: namer })],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1000,
  },
  server: { proxy: { "/api": "http://127.0.0.1:7777", "/auth": "http://127.0.0.1:7777" } },
});
