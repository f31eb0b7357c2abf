// What holds of every page: it opens, is accessible, fits the window, and is small.

import assert from "node:assert/strict";
import test from "node:test";
import { WIDTHS, Window } from "./browser.js";

export const PAGES = ["Cluster", "Reconfigure", "Placement", "Traces", "Objects", "Keys", "Health"];
// The most bytes of the first page with all that belongs to it.
const FIRST_PAGE = 100_000;

export function pages(shared) {
  for (const width of WIDTHS) {
    for (const scheme of ["light", "dark"]) {
      test(`every page is accessible and fits at ${width} px in ${scheme}`, () => everyPage(shared, { width, scheme }));
    }
    test(`every page works without JavaScript at ${width} px`, () => everyPage(shared, { width, javaScript: false }));
    test(`a page shows what changes, without a reload, at ${width} px`, () => live(shared, width));
  }
  test("the keyboard reaches the page past the navigation", () => keyboard(shared));
  test("a window without a session asks for a key, and for no other", () => signIn(shared));
  test("the checks of a page find what they look for", () => planted(shared));
  test("the first page is small", () => weight(shared));
}

async function everyPage({ browser, cluster }, choice) {
  const window = await Window.open(browser, await cluster.url(), choice);
  const { page } = window;
  const links = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
  assert.deepEqual(await links.allInnerTexts(), PAGES);
  for (const name of PAGES) {
    await window.visit(name);
    assert.match(await page.title(), new RegExp(`^${name} · `));
    for (const link of await links.all()) {
      const current = (await link.innerText()) === name ? "page" : null;
      assert.equal(await link.getAttribute("aria-current"), current, `${name}: its link alone is that of the current page`);
    }
    await page.getByRole("link", { name: "JSON" }).first().waitFor();
    await window.inspect();
  }
  await window.close();
}

async function live({ browser, cluster }, width) {
  const window = await Window.open(browser, await cluster.url(), { width });
  await window.page.evaluate(() => {
    globalThis.isLoadedOnce = true;
  });
  const name = `live-${width}`;
  await cluster.text(["domain", "create", name]);
  await window.page.getByRole("rowheader", { name, exact: true }).waitFor();
  assert.equal(await window.page.evaluate(() => globalThis.isLoadedOnce), true, "the page was not loaded again");
  await window.inspect();
  await window.close();
}

async function keyboard({ browser, cluster }) {
  const window = await Window.open(browser, await cluster.url(), { width: 1280 });
  const { page } = window;
  await page.keyboard.press("Tab");
  const skip = page.getByRole("link", { name: "Skip to the page" });
  assert.equal(await skip.evaluate((it) => it === document.activeElement), true, "the first stop skips the navigation");
  await page.keyboard.press("Enter");
  assert.equal(new URL(page.url()).hash, "#main");
  await window.close();
}

async function signIn({ browser, cluster }) {
  const url = await cluster.url();
  const window = await Window.open(browser, url, { width: 400 });
  await window.page.getByRole("button", { name: "Sign out" }).click();
  await window.heading("Open the console");
  await window.page.goto(url);
  await window.heading("Open the console");
  await window.page.getByRole("alert").getByText("was used already").waitFor();
  await window.page.getByLabel("Access key").fill("areokey1.wrong");
  await window.page.getByRole("button", { name: "Sign in" }).click();
  await window.page.getByRole("alert").waitFor();
  await window.page.goto(`${window.origin}/cluster`);
  await window.heading("Open the console");
  // The refusals are answers with a status, which the browser reports.
  window.messages = window.messages.filter((it) => !it.includes("the server responded with a status of 40"));
  await window.inspect();
  await window.close();
}

// Faults that a page could have, and the words of the check that finds each.
const FAULTS = [
  [() => document.querySelector("main").append(Object.assign(document.createElement("input"), { type: "text" })), /label: /],
  [() => document.querySelector("h1").setAttribute("class", "planted"), /color-contrast: /],
  [() => document.querySelector("main").append(Object.assign(document.createElement("pre"), { textContent: "wide ".repeat(400) })), /scrolls sideways/],
  [() => document.querySelector("main").insertAdjacentHTML("beforeend", '<p style="color: red">inline</p>'), /Content Security Policy/],
  [() => document.querySelector("main").append(document.createElement("h1")), /one heading of level 1/],
];

async function planted({ browser, cluster }) {
  const window = await Window.open(browser, await cluster.url(), { width: 400 });
  for (const [fault, words] of FAULTS) {
    await window.page.reload();
    await window.page.evaluate(() => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(".planted { color: #bbb; background: #fff; }");
      document.adoptedStyleSheets = [sheet];
    });
    await window.page.evaluate(fault);
    await assert.rejects(window.inspect(), words);
    window.messages = [];
  }
  await window.close();
}

async function weight({ browser, cluster }) {
  const window = await Window.open(browser, await cluster.url(), { width: 1280 });
  let bytes = 0;
  for (const response of window.responses) {
    if (response.url().includes("/live")) continue;
    const { responseBodySize, responseHeadersSize } = await response.request().sizes();
    bytes += responseBodySize + responseHeadersSize;
  }
  console.log(`first page: ${bytes} bytes in ${window.responses.length} responses`);
  assert.ok(bytes <= FIRST_PAGE, `the first page has ${bytes} bytes`);
  for (const name of PAGES) {
    const times = [];
    for (let tries = 0; tries < 5; tries += 1) {
      await window.visit(name);
      times.push(await window.page.evaluate(() => {
        const [entry] = performance.getEntriesByType("navigation");
        return entry.responseStart - entry.requestStart;
      }));
    }
    times.sort((a, b) => a - b);
    console.log(`${name}: median ${times[2].toFixed(1)} ms from the request to the first byte of the answer`);
  }
  await window.close();
}
