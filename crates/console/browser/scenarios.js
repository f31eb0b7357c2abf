// A person does by the console alone what an operator has to do, and the command line confirms it.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Window } from "./browser.js";
import { until } from "./cluster.js";

// The windows in which each is done, with the server that dies, its spare, and a suffix for names.
const WAYS = [
  { choice: { width: 1280 }, dead: "s2", spare: 6, suffix: "wide" },
  { choice: { width: 400, scheme: "dark" }, dead: "s3", spare: 7, suffix: "narrow" },
  { choice: { width: 400, javaScript: false }, dead: "s4", spare: 8, suffix: "plain" },
];
const SCENARIOS = [
  ["finds out why a put was slow", findSlowPut],
  ["revokes a key", revokeKey],
  ["uploads a file, downloads it and deletes it", keepFile],
  ["moves a domain from three copies to [5,3]", moveToCode],
  ["replaces a dead server", replaceDead],
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
  await cluster.text(["domain", "create", domain, "--dap", "ec", "--k", "2", "--servers", "s1,s2,s5", "--allow-f0"]);
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
  await page.getByLabel("Operation", { exact: true }).selectOption("areo.write");
  await page.getByRole("button", { name: "Show" }).click();
  const slowest = page.getByRole("table", { name: "The slowest operations" }).getByRole("link").first();
  await slowest.click();
  await page.getByRole("heading", { level: 2, name: /areo\.write, .* s$/ }).waitFor();
  await page.getByText(/The longest step is .* s5/).waitFor();
  await page.getByRole("img", { name: /spans of areo\.write/ }).waitFor();
  const row = page.getByRole("table", { name: "Spans" }).getByRole("row", { name: /net\.quorum/ }).first();
  await until("the table of spans is open", async () => {
    // The page may show newer operations meanwhile, which closes the table.
    if (!(await row.isVisible())) await page.getByText("All spans as a table").click();
    return row.isVisible();
  });
  await window.inspect();
  const id = new URL(page.url()).searchParams.get("id");
  await window.close();

  const slow = await cluster.objects("trace", "slow", "--list");
  // It survives no crash: a dead server could not be replaced in it.
  await cluster.text(["domain", "rm", domain, "--yes"]);
  assert.ok(slow.some((it) => it.trace === id && it.operation === "areo.write"), JSON.stringify(slow));
}

async function revokeKey({ browser, cluster }, { choice, suffix }) {
  const name = `lost-${suffix}`;
  const file = join(cluster.folder, `${name}.toml`);
  await cluster.text(["key", "create", name, "--grant", "read,write,list:default", "--file", file]);
  const list = () => cluster.run(["ls"], "", file);
  assert.equal((await list()).code, 0);

  const window = await Window.open(browser, await cluster.url(), choice);
  const { page } = window;
  await window.visit("Keys");
  await page.getByRole("table", { name: "Keys" }).getByRole("link", { name, exact: true }).click();
  await window.heading("Key");
  await window.inspect();
  await page.getByRole("checkbox", { name: "Revoke it" }).check();
  await page.getByRole("button", { name: "Revoke key" }).click();
  await window.shows(page.getByText("A key that was revoked counts nowhere"));
  await window.inspect();
  await window.visit("Keys");
  await page.getByRole("table", { name: "Keys" }).getByRole("row", { name: new RegExp(`${name} .* revoked`) }).waitFor();
  await window.inspect();
  await window.close();

  const key = (await cluster.objects("key", "ls")).find((it) => it.name === name);
  assert.equal(key.state, "revoked");
  await until("servers refuse the key", async () => (await list()).code !== 0);
}

async function keepFile({ browser, cluster }, { choice, suffix }) {
  const [name, text] = [`notes <${suffix}> & more.txt`, "a file of a person\n".repeat(500)];
  const window = await Window.open(browser, await cluster.url(), choice);
  const { page } = window;
  await window.visit("Objects");
  await page.getByRole("link", { name: "default", exact: true }).click();
  await page.getByRole("heading", { name: "Upload" }).waitFor();
  await window.inspect();
  await page.getByLabel("Key; one that ends with").fill("uploads/");
  await page.getByLabel("File", { exact: true }).setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
  await page.getByRole("button", { name: "Upload" }).click();
  await window.heading("Object");
  await window.inspect();
  assert.equal(await cluster.text(["get", `uploads/${name}`, "-"]), text);
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download" }).click();
  assert.equal(await readFile(await (await download).path(), "utf8"), text);
  await page.getByRole("link", { name: "Placement on servers" }).click();
  await window.heading("Placement");
  await page.getByText(/servers hold their element of this version/).waitFor();
  await window.inspect();
  await page.goBack();
  await window.heading("Object");
  await page.getByRole("checkbox", { name: "Delete it" }).check();
  await page.getByRole("button", { name: "Delete object" }).click();
  await window.heading("Objects");
  assert.equal(await page.getByRole("link", { name }).count(), 0);
  await window.inspect();
  await window.close();

  assert.notEqual((await cluster.run(["stat", `uploads/${name}`])).code, 0);
}

async function moveToCode({ browser, cluster }, { choice, suffix }) {
  const domain = `three-${suffix}`;
  await cluster.text(["domain", "create", domain, "--dap", "abd", "--servers", "s1,s2,s3"]);
  for (const key of ["a", "b", "c"]) await cluster.text(["put", "--domain", domain, key, "-"], `the value of ${key}`.repeat(1000));

  const window = await Window.open(browser, await cluster.url(), choice);
  const { page } = window;
  await window.visit("Reconfigure");
  await page.getByRole("link", { name: domain, exact: true }).click();
  await page.getByRole("heading", { level: 2, name: `Domain ${domain}` }).waitFor();
  await window.inspect();
  for (const server of ["s4", "s5"]) await page.getByRole("checkbox", { name: server }).check();
  await page.getByLabel("Kind").selectOption("ec – erasure-code: each server has a fragment, any k make the value");
  await page.getByLabel("k, fragments that make a value").fill("3");
  await page.getByRole("button", { name: "Show the plan" }).click();
  await window.heading("Plan of a change");
  const row = (name) => page.getByRole("row", { name });
  await row(/^n, servers 3 5/).waitFor();
  await row(/^kind abd ec/).waitFor();
  await window.inspect();
  await page.getByRole("button", { name: "Start the change" }).click();
  await window.heading("Reconfigure");
  await window.shows(page.getByText(new RegExp(`${domain} is .*\\[5, ?3\\].* now`)));
  await window.inspect();
  await window.close();

  const [shown] = await cluster.objects("domain", "show", domain);
  assert.deepEqual([shown.dap, shown.n, shown.k], ["ec", 5, 3], JSON.stringify(shown));
  assert.equal(await cluster.text(["get", "--domain", domain, "b", "-"]), "the value of b".repeat(1000));
}

async function replaceDead({ browser, cluster }, { choice, dead, spare }) {
  await cluster.join(spare);
  await cluster.kill(dead);

  const window = await Window.open(browser, await cluster.url(), choice);
  const { page } = window;
  await window.shows(page.getByText(`${dead} does not answer`));
  await window.inspect();
  await page.getByRole("link", { name: `replace ${dead} by another server` }).click();
  await window.heading("Replace a server");
  await page.getByLabel("Replace it by").selectOption(`s${spare}`);
  await page.getByRole("button", { name: "Show the plan" }).click();
  await window.heading("Replace a server");
  await page.getByRole("table", { name: "What will change" }).getByRole("rowheader", { name: "default" }).waitFor();
  await window.inspect();
  await page.getByRole("button", { name: `Replace ${dead} now` }).click();
  await window.heading("Cluster");
  await window.shows(page.getByText(`No domain names ${dead} any more`));
  await window.inspect();
  await page.getByRole("link", { name: `Forget ${dead}` }).click();
  await window.heading("Forget a server");
  await window.inspect();
  await page.getByRole("checkbox", { name: `the server ${dead} is stopped for good` }).check();
  await page.getByRole("button", { name: `Forget ${dead}` }).click();
  await window.heading("Cluster");
  assert.equal(await page.getByRole("rowheader", { name: dead, exact: true }).count(), 0);
  assert.equal(await page.getByText(`${dead} does not answer`).count(), 0);
  await window.inspect();
  await window.close();

  const status = await cluster.objects("status");
  assert.ok(!status.some((it) => it.server === dead), JSON.stringify(status));
  const sequence = JSON.stringify(await cluster.objects("reconfig", "status", "default"));
  assert.ok(sequence.includes(`"s${spare}"`) && !sequence.includes(`"${dead}"`), sequence);
}
