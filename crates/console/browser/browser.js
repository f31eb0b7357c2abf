// Chromium as a person uses it: a window of this width, which notes everything that a page does wrong.

import assert from "node:assert/strict";
import AxeBuilder from "@axe-core/playwright";
import { chromium } from "playwright-core";

// The rules of WCAG 2, levels A and AA.
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

export const WIDTHS = [1280, 400];

export async function launch() {
  // It reaches the console alone: no updates, no services of its vendor.
  const args = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  // A sandbox of Chromium needs another user than root.
  if (process.getuid() === 0) args.push("--no-sandbox");
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
}

// A window with a session of its own.
export class Window {
  // The messages of the browser's console: refusals of the Content-Security-Policy are among them.
  messages = [];
  // Everything that was fetched.
  responses = [];

  // Opens the console by this URL, in a window of this width: with JavaScript or not, in light or dark.
  static async open(browser, url, { width, scheme = "light", javaScript = true }) {
    const window = new Window();
    const context = await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme: scheme,
      javaScriptEnabled: javaScript,
    });
    context.setDefaultTimeout(60_000);
    window.page = await context.newPage();
    window.javaScript = javaScript;
    window.origin = new URL(url).origin;
    window.page.on("console", (message) => window.messages.push(`${message.type()}: ${message.text()}`));
    window.page.on("pageerror", (error) => window.messages.push(`error: ${error.message}`));
    window.page.on("response", (response) => window.responses.push(response));
    await window.page.goto(url);
    await window.heading("Cluster");
    return window;
  }

  async close() {
    await this.page.context().close();
  }

  // Goes to a page by the navigation.
  async visit(name) {
    const navigation = this.page.getByRole("navigation", { name: "Pages" });
    await navigation.getByRole("link", { name, exact: true }).click();
    await this.heading(name);
  }

  // Waits for the page with this heading.
  async heading(name) {
    try {
      await this.page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
    } catch {
      assert.fail(`${this.page.url()} is not the page ${name}:\n${await this.text()}`);
    }
    await this.page.waitForLoadState("load");
  }

  // Waits until this text is on the page. Without JavaScript the page is loaded again meanwhile, as a person does it.
  async shows(locator) {
    for (let tries = 0; tries < 180; tries += 1) {
      if ((await locator.count()) > 0) return;
      await this.page.waitForTimeout(1000);
      if (!this.javaScript) await this.page.reload();
    }
    assert.fail(`${this.page.url()} never shows ${locator}:\n${await this.text()}`);
  }

  // All that a person reads on the page.
  async text() {
    return this.page.getByRole("main").innerText();
  }

  // Everything that holds of each page, in every state.
  async inspect() {
    const where = `${this.page.url()} at ${this.page.viewportSize().width} px`;
    assert.equal(await this.page.getByRole("main").count(), 1, `${where}: one landmark of the main part`);
    assert.equal(await this.page.getByRole("heading", { level: 1 }).count(), 1, `${where}: one heading of level 1`);
    const wider = await this.page.evaluate(() => {
      const width = document.documentElement.clientWidth;
      if (document.documentElement.scrollWidth <= width) return [];
      // Parts of a region that scrolls by itself may be anywhere.
      const all = [...document.body.querySelectorAll("*")].filter((it) => !it.parentElement.closest("[role=region]"));
      const beyond = all.filter((it) => it.getBoundingClientRect().right > width + 1);
      return ["the page is too wide", ...beyond.slice(0, 8).map((it) => it.outerHTML.slice(0, 120))];
    });
    assert.deepEqual(wider, [], `${where}: the page scrolls sideways`);
    if (this.javaScript) {
      const found = await new AxeBuilder({ page: this.page }).withTags(RULES).analyze();
      const lines = found.violations.flatMap((it) => it.nodes.map((node) => `${it.id}: ${it.help}: ${node.html}: ${node.failureSummary}`));
      assert.deepEqual(lines, [], `${where}: violations of WCAG`);
    }
    this.isQuiet();
  }

  // Fails if the browser's console has a message, or something came from another origin.
  isQuiet() {
    assert.deepEqual(this.messages, [], "messages in the browser's console");
    const foreign = this.responses.map((it) => it.url()).filter((url) => new URL(url).origin !== this.origin);
    assert.deepEqual(foreign, [], "responses of other origins");
  }
}
