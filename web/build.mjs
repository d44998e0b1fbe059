// Builds the page into dist/, or into the directory that is given. Equal sources give equal bytes.
import { cp, mkdir } from "node:fs/promises";
import { build } from "esbuild";

const out = process.argv[2] ?? "dist";

await mkdir(out, { recursive: true });
await cp("static", out, { recursive: true });
await build({
  // The viewer and the style that the program puts into the file of a report.
  entryPoints: { page: "src/main.tsx", report: "src/report/viewer.ts", "report-style": "src/report/report.css" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
});
