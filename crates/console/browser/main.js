// The tests of the console in a browser: `cargo xtask console` runs them, with the program `areo` in the variable AREO.

import { after, before } from "node:test";
import { launch } from "./browser.js";
import { Cluster } from "./cluster.js";
import { pages } from "./pages.js";
import { pictures } from "./pictures.js";
import { scenarios } from "./scenarios.js";

// The cluster and the browser of all tests.
const shared = {};

before(async () => {
  shared.cluster = new Cluster(process.env.AREO);
  await shared.cluster.start();
  await shared.cluster.text(["put", "reports/spring.txt", "-"], "a value of some bytes\n".repeat(400));
  await shared.cluster.text(["put", "reports/summer.txt", "-"], "another value\n");
  await shared.cluster.text(["put", "notes/<b>&\"quoted\".txt", "-"], "a name that is no HTML\n");
  shared.browser = await launch();
});

after(async () => {
  await shared.browser?.close();
  await shared.cluster?.stop();
});

pages(shared);
scenarios(shared);
pictures(shared);
