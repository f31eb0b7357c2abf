// The pictures that docs/console.md shows.

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import UPNG from "upng-js";
import { Window } from "./browser.js";
import { PAGES } from "./pages.js";

// The most bytes of a picture, its most pixels from top to bottom, and its colours.
const [MOST, HEIGHT, COLOURS] = [100_000, 1600, 128];
// Pages that show more with a query.
const QUERIES = { Placement: "?domain=default&key=reports/spring.txt", Objects: "?domain=default" };

export function pictures(shared) {
  const folder = process.env.SCREENSHOTS;
  if (folder) test("every page is pictured", () => take(shared, folder));
}

async function take({ browser, cluster }, folder) {
  await mkdir(folder, { recursive: true });
  const window = await Window.open(browser, await cluster.url(), { width: 1280 });
  for (const name of PAGES) {
    await window.visit(name);
    const query = QUERIES[name];
    if (query) await window.page.goto(`${window.page.url()}${query}`);
    const tall = await window.page.evaluate(() => document.documentElement.scrollHeight);
    const clip = { x: 0, y: 0, width: 1280, height: Math.min(tall, HEIGHT) };
    const picture = UPNG.decode(await window.page.screenshot({ fullPage: true, clip }));
    const bytes = Buffer.from(UPNG.encode(UPNG.toRGBA8(picture), picture.width, picture.height, COLOURS));
    const path = join(folder, `${name.toLowerCase()}.png`);
    await writeFile(path, bytes);
    assert.ok(bytes.length <= MOST, `${path} has ${bytes.length} bytes`);
  }
  await window.close();
}
