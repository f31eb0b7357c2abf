// Draws what measurements and `areo trace` print as JSON. Nothing here touches a page: a report goes in, text comes out, so that
// tests draw the same. `view.html` has what a page does beside that, `pictures.js` and `traces.js` follow in the same script.
'use strict';

// ---- text and figures ----

const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
const unique = (all) => [...new Set(all)];
const sum = (all) => all.reduce((a, b) => a + b, 0);
const whole = (figure) => figure.toFixed(0);
const tenth = (figure) => figure.toFixed(1);
const hundredth = (figure) => figure.toFixed(2);
const thousandth = (figure) => figure.toFixed(3);

/** Three digits. */
const short = (figure) => figure.toFixed(Math.abs(figure) < 10 ? 2 : Math.abs(figure) < 100 ? 1 : 0);

/** The unit of a duration: its nanoseconds, and what it is called. */
const scale = (ns) => (ns < 1e3 ? [1, 'ns'] : ns < 1e6 ? [1e3, 'µs'] : ns < 1e9 ? [1e6, 'ms'] : [1e9, 's']);

/** A duration in three digits. */
function duration(ns) {
  const [by, unit] = scale(ns);
  return `${by === 1 ? ns : short(ns / by)} ${unit}`;
}

/** Median, least and most of several runs; all 0 of none. */
function spread(figures) {
  const sorted = [...figures].sort((a, b) => a - b);
  if (sorted.length === 0) return { median: 0, min: 0, max: 0 };
  const middle = Math.floor(sorted.length / 2);
  const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { median, min: sorted[0], max: sorted[sorted.length - 1] };
}

/** A median with the least and the most, as the documents write it: 687 (673 to 701). */
function ranged(spread, write = short) {
  if (!spread) return '';
  const [median, min, max] = [spread.median, spread.min, spread.max].map(write);
  return min === max ? median : `${median} (${min} to ${max})`;
}

// ---- pages ----

/** A part of a page: `pictures` are a title and an SVG each, `wide` ones take the whole width; `texts` columns of a table are
 *  texts, the others figures. */
const section = (heading, rest) => ({ heading, text: '', pictures: [], wide: [], ...rest });
const made = ({ made_at_ms, machine: { processors, model, memory_bytes, kernel } }) =>
  `${new Date(made_at_ms).toISOString().slice(0, 19).replace('T', ' ')} UTC, ${processors} processors (${model}), ` +
  `${tenth(memory_bytes / 2 ** 30)} GiB, Linux ${kernel}`;
const failures = ({ failed, failures }) =>
  failed ? `${failed} operations failed: ${failures.join('; ')}` : 'No operation failed.';

function traces({ spans, domains, compared }) {
  const all = assemble(spans), made = ['Ctrl and wheel: zoom. Drag: move. Double click: all again. Rest on a bar: its attributes.'];
  if (!compared) {
    const one = (trace) => section(heading(trace), { text: about(trace, domains), wide: [['', waterfall(trace)]] });
    return { title: all.length === 1 ? `A trace of ${all[0].name}` : `${all.length} traces`, made, sections: all.map(one) };
  }
  // A trace may be compared with itself.
  const both = compared.traces.map((id) => all.find((trace) => trace.id === id));
  const line = (trace, which) => `${'AB'[which]}: ${heading(trace)} · ${about(trace, domains)}`;
  return {
    title: `${both[0].name} beside ${both[1].name}`,
    made,
    sections: [
      section('Spans, each from the begin of its trace on', { text: both.map(line), wide: [['', beside(both)]] }),
      section('Where the time went', { table: went(compared) }),
    ],
  };
}

function went({ rows, went, rounds }) {
  const time = (ns) => (ns == null ? '' : duration(ns));
  const both = (first, second) => (first == null || second == null ? '' : difference(first, second));
  const row = ({ depth, span, first, second }) => ['\u2003'.repeat(depth) + span, first?.count ?? '', time(first?.ns),
    second?.count ?? '', time(second?.ns), both(first?.ns, second?.ns)];
  return {
    texts: 1,
    head: ['span', 'number in A', 'time in A', 'number in B', 'time in B', 'B − A'],
    rows: [...rows.map(row), ['rounds', rounds[0], '', rounds[1], '', ''],
      ...went.map((of) => [of.share ?? 'of it on disk', '', time(of.first_ns), '', time(of.second_ns), both(of.first_ns, of.second_ns)])],
  };
}

// Stores beside each other.

function peers(report) {
  const sections = [section('The stores', {
    text: 'All of them ran at the same time, on the same machine as the clients, and were measured in turn.',
    table: {
      texts: 6,
      head: ['store', 'version', 'servers', 'keeps', 'acknowledged', 'connections'],
      rows: report.targets.map((of) => [of.target, of.version, of.servers, of.keeps, of.durability, of.connections]),
    },
  })];
  for (const size of unique(report.points.map((point) => point.size))) {
    for (const operation of ['put', 'get', 'put-if', 'increment']) {
      const points = report.points.filter((point) => point.size === size && point.operation === operation);
      if (points.length) sections.push(load(report, points));
    }
  }
  if (report.breakdowns?.length) sections.push(breakdowns(report));
  if (report.ratios.length) sections.push(ratios(report));
  if (report.killed?.length) sections.push(killed(report));
  if (report.limits?.length) sections.push(limits(report));
  return { title: 'Areo beside its peers', made: [report.command, made(report)], sections };
}

const of = (point, figure) => spread(point.runs.map(figure));
const timed = ({ operation }) => (operation === 'put-if' ? 'put' : operation);
const latency = (point, name) => spread(point.runs.map((run) => run[timed(point)]).filter(Boolean).map((times) => times[name]));
const cpu = (run) => run.client_cpu_us + run.server_cpu_us;
const perByte = (point) => of(point, (run) => (cpu(run) * 1e3) / point.size);

/** Everything about one operation on values of one size. */
function load(report, points) {
  const plot = (title, y, figure) => [title, lines({
    title, x: 'clients', y,
    lines: report.targets.map(({ target }) => ({
      name: target,
      places: points.filter((point) => point.target === target).map((point) => ({ x: point.clients, ...figure(point) })),
    })),
  })];
  const told = (point, name) => {
    const all = point.runs.map((run) => run[name]).filter((figure) => figure != null);
    return all.length ? hundredth(spread(all).median) : 'not told';
  };
  const row = (point) => {
    const throughput = of(point, (run) => run.per_second);
    return [
      point.target, point.clients, ranged(throughput, whole),
      ...['p50_us', 'p99_us', 'p999_us'].map((name) => whole(latency(point, name).median)),
      tenth(of(point, (run) => run.client_cpu_us).median), tenth(of(point, (run) => run.server_cpu_us).median),
      hundredth(perByte(point).median), whole(of(point, (run) => run.wire_bytes).median),
      told(point, 'rounds'), told(point, 'configurations'),
      tenth(of(point, (run) => run.reconfigurations / run.seconds).median),
      ...['least_of_a_client', 'most_of_a_client'].map((name) => told(point, name)),
      whole(of(point, (run) => run.resident_bytes).median / 2 ** 20), sum(point.runs.map((run) => run.failed)),
    ];
  };
  return section(`${points[0].operation} of ${points[0].size} bytes`, {
    text: 'Medians of the runs, with minimum and maximum.',
    pictures: [
      plot('Throughput', 'operations per second', (point) => of(point, (run) => run.per_second)),
      plot('Latency, p50', 'µs', (point) => latency(point, 'p50_us')),
      plot('Latency, p99', 'µs', (point) => latency(point, 'p99_us')),
      plot('CPU time of clients and servers', 'µs per operation', (point) => of(point, cpu)),
    ],
    table: {
      texts: 1,
      head: ['store', 'clients', 'operations/s', 'p50 µs', 'p99 µs', 'p99.9 µs', 'client CPU µs', 'server CPU µs',
        'CPU ns per byte', 'bytes on the wire', 'rounds', 'configurations', 'reconfigurations/s',
        'least of a client', 'most of a client', 'MiB in memory', 'failed'],
      rows: points.map(row),
    },
  });
}

/** Where the time of operations went: bars for each size, a sample of each kind of operation, and all figures. */
function breakdowns(report) {
  const all = report.breakdowns, known = all.map((one) => one.target);
  const untold = report.targets.map((one) => one.target).filter((target) => !known.includes(target));
  const pictures = [], wide = [];
  for (const size of unique(all.map((one) => one.size))) {
    for (const operation of ['put', 'get', 'put-if']) {
      const these = all.filter((one) => one.size === size && one.operation === operation);
      if (!these.length) continue;
      const what = `${operation} of ${size} bytes`, parts = these[0].parts.map((part) => part.name);
      const bars = (by) => these.map((one) => ({
        name: `${one.target}, ${one.clients}`, parts: one.parts.map((part) => part.us / by(one)),
      }));
      for (const [title, y, by] of [[`A ${what}, by clients`, 'µs', () => 1], [`Shares of a ${what}`, '%', (one) => one.mean_us / 100]]) {
        pictures.push([title, stack({ title, y, parts, bars: bars(by) })]);
      }
      const last = these[these.length - 1], trace = assemble(last.sample).pop();
      if (trace) wide.push([`A ${what} at ${last.target}, ${last.clients} clients · ${heading(trace)}`, waterfall(trace)]);
    }
  }
  return section('Where the time of an operation goes', {
    text: 'After the measurements the same load continued, and two hundred operations a second were traced; figures are their ' +
      'means. Each moment of an operation counts once, computing before waiting. Disk is the slowest sync for which the ' +
      'operation waited. The sample is the median operation with the most clients.' +
      (untold.length ? ` There is no breakdown of ${untold.join(', ')}.` : ''),
    pictures, wide,
    table: {
      texts: 2,
      head: ['store', 'operation', 'bytes', 'clients', 'watched', 'mean, µs', ...all[0].parts.map((part) => `${part.name}, µs`)],
      rows: all.map((one) => [one.target, one.operation, one.size, one.clients, one.operations, tenth(one.mean_us),
        ...one.parts.map((part) => tenth(part.us))]),
    },
  });
}

function ratios(report) {
  return section(`${report.ratios[0].target} against the others`, {
    text: 'Ratios of the same run, in which the stores take turns. Above 1 is more throughput, below 1 is less CPU time per operation.',
    table: {
      texts: 2,
      head: ['against', 'operation', 'bytes', 'clients', 'throughput ratio', 'CPU ratio'],
      rows: report.ratios.map((one) => [one.with, one.operation, one.size, one.clients, ranged(one.ratio.throughput, hundredth),
        ranged(one.ratio.cpu, hundredth)]),
    },
  });
}

/** What clients noticed of a member that was killed, store by store. */
function killed(report) {
  const { readers, writers, size } = report.killed[0];
  const picture = (one, row) => [one.target, timeline({
    title: one.target, x: 'seconds', y: `completions per ${one.step_ms} ms`, row,
    places: one.completions.map((count, step) => [((step + 0.5) * one.step_ms) / 1e3, count]),
    moment: { at: one.killed_at_ms / 1e3, name: 'killed' },
  })];
  return section('A member is killed', {
    text: `${readers} clients got and ${writers} put values of ${size} bytes while a member of the store was killed (kill -9), ` +
      'which was not restarted. A time without completions that does not end counts to the end.',
    pictures: report.killed.map(picture),
    table: {
      texts: 2,
      head: ['store', 'killed', 'longest time without completions, ms', 'before it', 'completions/s before', 'after',
        'after / before', 'failed'],
      rows: report.killed.map((one) => [one.target, one.victim, tenth(one.longest_gap_ms), tenth(one.longest_gap_before_ms),
        whole(one.per_second_before), whole(one.per_second_after), one.ratio == null ? 'none' : hundredth(one.ratio), one.failed]),
    },
  });
}

/** What the machine can do, and how often the first store does it, or could have, for each kind of operation. */
function limits(report) {
  const first = report.targets[0].target, most = Math.max(...report.points.map((point) => point.clients));
  const busiest = report.points.filter((point) => point.target === first && point.clients === most);
  const times = (limit) => (point) =>
    tenth((limit.unit === 'ns per byte' ? perByte(point) : of(point, cpu)).median / limit.cpu.median);
  return section('Limits of the machine', {
    text: 'These bound every store. CPU is that of both ends. The last columns are the CPU time of an operation of ' +
      `${first}, clients and servers together, divided by that of the limit: per byte where the unit is per byte.`,
    table: {
      texts: 2,
      head: ['limit', 'unit', 'takes', 'CPU',
        ...busiest.map((point) => `a ${point.operation} of ${point.size} bytes, ${point.clients} clients`)],
      rows: report.limits.map((limit) => [limit.name, limit.unit,
        ranged(limit.takes, thousandth), thousandth(limit.cpu.median),
        ...busiest.map(times(limit))]),
    },
  });
}

// Servers far apart.

function wideArea(report) {
  const trips = unique(report.points.map((point) => point.round_trip_ms)).sort((a, b) => a - b);
  const line = (name, operation, rounds) => ({
    name,
    places: trips.map((x) => ({
      x,
      medians: report.points.filter((point) => point.round_trip_ms === x && point.operation === operation)
        .flatMap((point) => point.by_rounds).filter((by) => rounds == null || by.rounds === rounds)
        .map((by) => by.times.p50_us / 1e3),
    })).filter(({ medians }) => medians.length).map(({ x, medians }) => ({ x, ...spread(medians) })),
  });
  const row = (point) => (by) => [point.shape, point.servers.join(' '), point.client, point.operation, point.beside ?? '', by.rounds,
    by.times.count, whole(point.round_trip_ms), tenth(by.times.p50_us / 1e3), tenth(by.times.p99_us / 1e3), hundredth(by.round_trips)];
  const plot = {
    title: 'Latency, p50', x: 'round trip to the closest quorum, ms', y: 'ms',
    lines: [line('put', 'put'), line('get of one round', 'get', 1), line('get of two rounds', 'get', 2)],
  };
  return {
    title: 'Servers far apart',
    made: [report.command, made(report)],
    sections: [
      section('Round trips between sites, ms', {
        text: 'A proxy between clients and servers makes these delays; everything runs on one machine. ' + (report.loss_percent
          ? `${report.loss_percent} % of the pieces of data are delayed by 200 ms and a round trip, with all that follow on ` +
            'their connection, as after the loss of a packet.' : 'There is no other delay.'),
        table: {
          texts: 1,
          head: ['site', ...report.sites],
          rows: report.sites.map((site, place) => [site, ...report.round_trips_ms[place].map(whole)]),
        },
      }),
      section('Puts and gets', {
        text: `Values of ${report.size} bytes. Round trips are those to the farthest server of the closest quorum: a put takes two, a ` +
          'get one, or two if the version may not be at a quorum yet, because another client puts it. The second round waits only ' +
          'for servers without the version.',
        pictures: [[plot.title, lines(plot)]],
        table: {
          texts: 5,
          head: ['domain', 'servers at', 'client at', 'operation', 'beside a writer at', 'rounds', 'operations', 'round trip, ms',
            'p50, ms', 'p99, ms', 'p50 in round trips'],
          rows: report.points.flatMap((point) => point.by_rounds.map(row(point))),
        },
      }),
      section('Counts', {
        text: `${report.broken.length ? report.broken.join('; ')
          : 'All counts of rounds are right.'} ${failures(report)}`,
      }),
    ],
  };
}

// The papers' experiments.

// What may be varied, what it is called, and how a figure of it is written.
const VARIED = [['size', 'size', bytes], ['servers', 'servers', mark], ['readers', 'readers', mark], ['writers', 'writers', mark],
  ['block_bytes', 'size of blocks', bytes], ['k', 'k', mark], ['reconfigurers', 'reconfigurers', mark]];
const QUANTITIES = [['read_ms', 'Latency of a read', 'ms'], ['write_ms', 'Latency of a write', 'ms'],
  ['reconfiguration_ms', 'Latency of a reconfiguration', 'ms'], ['restart_ms', 'Time of a restart', 'ms'],
  ['read_configurations', 'Configurations that a read visits', 'configurations'], ['write_success', 'Writes that prevailed', 'share']];

function paper(report) {
  const settings = report.points.map((point) => point.setting);
  const values = (name) => unique(settings.map((setting) => setting[name]));
  // The number of fragments goes with the servers.
  const varied = VARIED.filter(([name]) => values(name).length > 1 && !(name === 'k' && values('servers').length > 1));
  // What most points have.
  const times = (name, value) => settings.filter((setting) => setting[name] === value).length;
  const usual = (name) => {
    const most = Math.max(...values(name).map((value) => times(name, value)));
    const often = values(name).filter((value) => times(name, value) === most);
    return (name === 'servers' ? Math.max : Math.min)(...often);
  };
  const sections = [against(report)];
  for (const left of values('left')) {
    // Nothing varies: each variant has one place.
    if (!varied.length) sections.push(byVariant(left, report.points.filter(({ setting }) => setting.left === left)));
    for (const along of varied) {
      // A place of a line has as much of everything else as usual.
      const others = varied.filter((other) => other !== along && other[0] !== 'size');
      const here = report.points.filter(({ setting }) =>
        setting.left === left && others.every(([name]) => setting[name] === usual(name)));
      sections.push(by(along, left, here));
    }
  }
  sections.push(measured(report), compared(report), laws(report));
  return { title: `${report.experiment}, repeated`, made: [report.command, made(report)], sections };
}

/** What differs from the publication. */
function against({ changes, not_run, scale, runs, seed, ...report }) {
  // `WHAT: HERE instead of THERE`, of which the first and the last may be left out.
  const row = (change) => change.match(/^(?:([^:]*): )?(.*?)(?: instead of (.*))?$/).slice(1).map((part) => part ?? '');
  return section(`Against the publication, at scale ${scale}`, {
    text: `${runs} ${runs === 1 ? 'run' : 'runs'} of each point, seed ${seed}. ${[...(not_run ?? []), failures(report)].join('; ')}`,
    table: { texts: 3, head: ['', 'here', 'in the publication'], rows: changes.flatMap((change) => change.split('; ')).map(row) },
  });
}

const MEDIANS = 'Medians over the runs of the means of a run, with minimum and maximum.';
const byHeading = (along, left) => `By ${along}${left == null ? '' : ` (${left})`}`;

function byVariant(left, points) {
  const pictures = QUANTITIES.flatMap(([quantity, title, x]) => {
    const drawn = points.filter((point) => point.values[quantity]).map((point) => ({ name: point.variant, ...point.values[quantity] }));
    return unique(drawn.flatMap(({ min, max }) => [min, max])).length < 2 ? [] : [[title, bars({ title, x, bars: drawn })]];
  });
  return section(byHeading('variant', left), { text: MEDIANS, pictures });
}

function by([name, called, write], left, points) {
  const variants = unique(points.map((point) => point.variant));
  // More lines than colours: each algorithm has a picture of its own.
  const groups = variants.length <= COLOURS.length ? [null] : unique(points.map((point) => point.algorithm));
  const pictures = [];
  for (const [quantity, what, y] of QUANTITIES) {
    for (const group of groups) {
      const these = points.filter((point) => (group == null || point.algorithm === group) && point.values[quantity]);
      const figures = unique(these.flatMap((point) => [point.values[quantity].min, point.values[quantity].max]));
      // All figures are the same.
      if (figures.length < 2) continue;
      const line = (variant) => ({
        name: variant,
        places: these.filter((point) => point.variant === variant)
          .map((point) => ({ x: point.setting[name], ...point.values[quantity] })),
      });
      const title = group == null ? what : `${what}, ${group}`;
      const drawn = unique(these.map((point) => point.variant)).map(line);
      pictures.push([title, lines({ title, x: called, y, called: write, lines: drawn })]);
    }
  }
  return section(byHeading(called, left), { text: MEDIANS, pictures });
}

const perhaps = (figure) => (figure == null ? '' : short(figure));

function measured(report) {
  const names = unique(report.points.flatMap((point) => Object.keys(point.values))).sort();
  return section('All measurements', {
    table: {
      texts: 2,
      head: ['variant', 'at', 'published read_ms', 'of', ...names],
      rows: report.points.map((point) => [point.variant, point.at, perhaps(point.published_read_ms), point.published_at ?? '',
        ...names.map((name) => ranged(point.values[name]))]),
    },
  });
}

function compared(report) {
  return section('Ratios of variants', {
    text: 'The first variant divided by the second, of the same run.',
    table: {
      texts: 6,
      head: ['variant', 'by', 'of', 'at', 'published order', 'why not', 'ratio', 'published'],
      rows: report.comparisons.map((one) => [one.above, one.below, one.quantity, one.at,
        one.verdict === 'unpublished' ? '' : one.verdict, one.reason, ranged(one.ratio), perhaps(one.published)]),
    },
  });
}

function laws(report) {
  return section('Counts that do not depend on the machine', {
    table: {
      texts: 4,
      head: ['count', 'variant', 'at', '', 'expected', 'measured'],
      rows: report.laws.map((law) => [law.what, law.variant, law.at, law.holds ? 'holds' : 'BROKEN', law.expected, law.measured]),
    },
  });
}

// ---- a page as HTML ----

/** What can be drawn, by the `report` of what was printed. */
const PAGES = { peers, paper, 'wide-area': wideArea, traces };
const page = (report) => PAGES[report.report](report);

function table({ texts, head, rows }) {
  // A column without any content is left out.
  const shown = [...head.keys()].filter((place) => !rows.length || rows.some((row) => row[place] !== ''));
  const row = (cell) => (row) => `<tr>${shown.map((place) =>
    `<${cell}${place < texts ? ' class="text"' : ''}>${escape(row[place])}</${cell}>`).join('')}</tr>\n`;
  return `<div class="scroll"><table>\n<thead>${row('th')(head)}</thead>\n<tbody>\n${rows.map(row('td')).join('')}</tbody></table></div>\n`;
}

function html({ title, made, sections }) {
  const figure = (kind) => ([title, svg]) =>
    `<figure class="${kind}">${kind === 'wide' && title ? `<figcaption>${escape(title)}</figcaption>` : ''}${svg}</figure>\n`;
  const part = (of) => `<section>\n${of.heading ? `<h2>${escape(of.heading)}</h2>\n` : ''}` +
    [of.text].flat().filter(Boolean).map((text) => `<p>${escape(text)}</p>\n`).join('') +
    (of.pictures.length ? `<div class="plots">\n${of.pictures.map(figure('plot')).join('')}</div>\n` : '') +
    of.wide.map(figure('wide')).join('') + (of.table ? table(of.table) : '') + '</section>\n';
  return `<h1>${escape(title)}</h1>\n${made.map((line) => `<p class="made">${escape(line)}</p>\n`).join('')}${sections.map(part).join('')}`;
}

/** The pictures of a page, for documents: the name of a file for each, without an end, and the SVG. */
const pictures = ({ sections }) => sections.flatMap(({ heading, pictures, wide }) => [...pictures, ...wide].map(([title, svg]) =>
  [`${heading} ${title}`.split(/[^A-Za-z0-9]+/).filter(Boolean).join('-').toLowerCase(), svg]));
