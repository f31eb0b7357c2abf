// A person does by the console alone what an operator has to do, and the command line confirms it.

import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Window } from "./browser.js";
import { until } from "./cluster.js";

// The windows in which each is done, with the server that dies, its spare, and a suffix for names.
const WAYS = [
  { choice: { width: 1280 }, dead: "s2", spare: 6, suffix: "wide" },
  { choice: { width: 400 }, dead: "s3", spare: 7, suffix: "narrow" },
  { choice: { width: 400, javaScript: false }, dead: "s4", spare: 8, suffix: "plain" },
];
const SCENARIOS = [
  ["finds out why a put was slow", findSlowPut],
];

export function scenarios(shared) {
  for (const [what, scenario] of SCENARIOS) {
    for (const way of WAYS) {
      const { width, javaScript = true } = way.choice;
      const title = `a person ${what}, at ${width} px ${javaScript ? "with" : "without"} JavaScript`;
      test(title, () => scenario(shared, way));
    }
  }
}

// A put that takes this long, since a server of its quorum stands still.
const STILL = 2000;

async function findSlowPut({ browser, cluster }, { choice, suffix }) {
  const domain = `slow-${suffix}`;
  await cluster.text(["domain", "create", domain, "--dap", "ec", "--k", "2", "--servers", "s1,s5", "--allow-f0"]);
  await cluster.text(["put", "--domain", domain, "first", "-"], "the domain is known now");
  cluster.signal("s5", "SIGSTOP");
  const put = cluster.text(["put", "--domain", domain, "slow", "-"], "a value that waits");
  await pause(STILL);
  cluster.signal("s5", "SIGCONT");
  await put;

  const window = await Window.open(browser, await cluster.url(), choice);
  const { page } = window;
  await window.visit("Traces");
  await page.getByLabel("Which").selectOption("the slowest of each kind");
  await page.getByLabel("Operation").selectOption("areo.write");
  await page.getByRole("button", { name: "Show" }).click();
  const slowest = page.getByRole("table", { name: "The slowest operations" }).getByRole("link").first();
  await slowest.click();
  await page.getByRole("heading", { level: 2, name: /areo\.write, .* s$/ }).waitFor();
  await page.getByText(/The longest step is .* s5/).waitFor();
  await page.getByRole("img", { name: /spans of areo\.write/ }).waitFor();
  await page.getByText("All spans as a table").click();
  await page.getByRole("table", { name: "Spans" }).getByRole("row", { name: /net\.quorum/ }).first().waitFor();
  await window.inspect();
  const id = new URL(page.url()).searchParams.get("id");
  await window.close();

  const slow = await cluster.objects("trace", "slow", "--list");
  assert.ok(slow.some((it) => it.trace === id && it.operation === "areo.write"), JSON.stringify(slow));
}
