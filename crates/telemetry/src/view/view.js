// Draws what measurements and `areo trace` print as JSON. Nothing here touches a page: a report goes in, text comes out, so that
// tests draw the same. `view.html` has what a page does beside that.
'use strict';

// ---- text and figures ----

const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
const unique = (all) => [...new Set(all)];
const sum = (all) => all.reduce((a, b) => a + b, 0);
const whole = (figure) => figure.toFixed(0);
const tenth = (figure) => figure.toFixed(1);
const hundredth = (figure) => figure.toFixed(2);

/** Three digits. */
const short = (figure) => figure.toFixed(Math.abs(figure) < 10 ? 2 : Math.abs(figure) < 100 ? 1 : 0);

/** A figure at an axis. */
function mark(figure) {
  const [by, unit] = figure < 1e3 ? [1, ''] : figure < 1e6 ? [1e3, 'k'] : [1e6, 'M'];
  const scaled = figure / by;
  return scaled.toFixed(scaled < 10 && Math.abs(scaled - Math.round(scaled)) > 1e-9 ? 1 : 0) + unit;
}

/** A duration in three digits. */
function duration(ns) {
  const [by, unit] = ns < 1e3 ? [1, 'ns'] : ns < 1e6 ? [1e3, 'µs'] : ns < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
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

// ---- pictures ----

// Colours that colour-blind readers can distinguish (Okabe and Ito).
const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#d55e00', '#cc79a7', '#56b4e9', '#5a5a5a'];
const colour = (place) => COLOURS[place % COLOURS.length];
const WIDTH = 640, HEIGHT = 340, TOP = 34, BOTTOM = 292, LEFT = 72;
// Names of lines and parts are at the right of it.
const BESIDE_NAMES = 482;
// A figure of 0 has no place on an axis of powers: it is drawn here.
const LEAST = 1e-3;

const at = (number) => number.toFixed(1);
const text = (x, y, content, style = '') => `<text x="${at(x)}" y="${at(y)}" ${style}>${escape(content)}</text>\n`;
const line = (x1, y1, x2, y2, style) => `<line x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}" ${style}/>\n`;
const rect = (x, y, w, h, style) => `<rect x="${at(x)}" y="${at(y)}" width="${at(w)}" height="${at(h)}" ${style}/>\n`;
const svg = (width, height, content) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">\n` +
  `${rect(0, 0, width, height, 'fill="#fff"')}${content}</svg>\n`;

const linear = (from, to, [low, high]) => (figure) => low + ((figure - from) / (to - from)) * (high - low);
const powers = (from, to, ends) => {
  const of = linear(Math.log(from), Math.log(to), ends);
  return (figure) => of(Math.log(Math.max(figure, LEAST)));
};

/** Title, axes with their marks, and what is between them. */
function frame({ title, x = '', y, right, xs = [], ys }, content) {
  const marks = ys.map(([place, name]) =>
    line(LEFT, place, right, place, 'stroke="#000" stroke-opacity="0.12"') +
    text(LEFT - 6, place + 4, name, 'text-anchor="end" font-size="11"'));
  const below = xs.map(([place, name]) =>
    line(place, TOP, place, BOTTOM, 'stroke="#000" stroke-opacity="0.12"') +
    text(place, BOTTOM + 15, name, 'text-anchor="middle" font-size="11"'));
  const middle = (LEFT + right) / 2;
  return svg(WIDTH, HEIGHT,
    text(middle, 20, title, 'text-anchor="middle" font-size="15"') + marks.join('') + below.join('') +
    line(LEFT, TOP, LEFT, BOTTOM, 'stroke="#000"') + line(LEFT, BOTTOM, right, BOTTOM, 'stroke="#000"') +
    text(middle, HEIGHT - 12, x, 'text-anchor="middle"') +
    text(0, 0, y, `text-anchor="middle" transform="translate(16 ${(TOP + BOTTOM) / 2}) rotate(-90)"`) + content);
}

const names = (all) => all.map((name, row) =>
  line(BESIDE_NAMES + 12, 44 + 20 * row, BESIDE_NAMES + 28, 44 + 20 * row, `stroke="${colour(row)}" stroke-width="3"`) +
  text(BESIDE_NAMES + 34, 48 + 20 * row, name)).join('');

/** Figures of an axis of powers that are easily read: powers of ten, and of a short axis 2 and 5 times those. */
function marksOfPowers(from, to) {
  const low = Math.floor(Math.log10(from)), high = Math.ceil(Math.log10(to));
  const marks = [];
  for (let power = low; power <= high; power++) {
    for (const digit of high - low > 3 ? [1] : [1, 2, 5]) marks.push(digit * 10 ** power);
  }
  return marks.filter((figure) => from <= figure && figure <= to);
}

const marksOf = (most) => {
  const step = 10 ** Math.floor(Math.log10(most)) / (most / 10 ** Math.floor(Math.log10(most)) < 3 ? 4 : 1);
  const marks = [];
  for (let figure = 0; figure <= most; figure += step) marks.push(figure);
  return marks;
};

/** Lines over axes of powers, with medians, and bars from the least to the most. */
function lines({ title, x, y, lines }) {
  const places = lines.flatMap((line) => line.places);
  const range = (all) => all.length
    ? [Math.max(Math.min(...all), LEAST) / 1.3, Math.max(...all, LEAST) * 1.3] : [LEAST, 1];
  const [left, right] = range(places.map((place) => place.x));
  const [low, high] = range(places.flatMap((place) => [place.min, place.max]));
  const across = powers(left, right, [LEFT, BESIDE_NAMES]), up = powers(low, high, [BOTTOM, TOP]);
  const where = unique(places.map((place) => Math.max(place.x, LEAST)));
  const xs = (where.length <= 8 ? where : marksOfPowers(left, right)).map((figure) => [across(figure), mark(figure)]);
  const ys = marksOfPowers(low, high).map((figure) => [up(figure), mark(figure)]);
  const drawn = lines.map(({ places }, row) => {
    const of = colour(row);
    const points = places.map((place) => `${at(across(place.x))},${at(up(place.median))}`).join(' ');
    const bars = places.map((place) => {
      const here = across(place.x), [least, most] = [up(place.min), up(place.max)];
      return line(here, least, here, most, `stroke="${of}"`) + line(here - 4, least, here + 4, least, `stroke="${of}"`) +
        line(here - 4, most, here + 4, most, `stroke="${of}"`) +
        `<circle cx="${at(here)}" cy="${at(up(place.median))}" r="3" fill="${of}"/>\n`;
    });
    return `<polyline points="${points}" fill="none" stroke="${of}" stroke-width="2"/>\n${bars.join('')}`;
  });
  return frame({ title, x, y, right: BESIDE_NAMES, xs, ys }, drawn.join('') + names(lines.map((line) => line.name)));
}

/** Bars of parts, one above the other, from 0 on. */
function stack({ title, y, parts, bars }) {
  const most = Math.max(LEAST, ...bars.map((bar) => sum(bar.parts))) * 1.1;
  const up = linear(0, most, [BOTTOM, TOP]), room = (BESIDE_NAMES - LEFT) / Math.max(bars.length, 1);
  const drawn = bars.map((bar, place) => {
    const left = LEFT + room * (place + 0.2);
    let below = 0;
    const drawn = bar.parts.map((part, row) => {
      const bottom = up(below);
      below += part;
      return rect(left, up(below), room * 0.6, bottom - up(below), `fill="${colour(row)}"`);
    });
    return drawn.join('') + text(left + room * 0.3, up(below) - 4, bar.name, 'text-anchor="middle"');
  });
  const ys = marksOf(most).map((figure) => [up(figure), mark(figure)]);
  return frame({ title, y, right: BESIDE_NAMES, ys }, drawn.join('') + names(parts));
}

/** Figures over time, both from 0 on, with a moment that is marked. */
function timeline({ title, x, y, places, moment, row }) {
  const right = WIDTH - 20;
  const last = Math.max(LEAST, ...places.map((place) => place[0]));
  const most = Math.max(1, ...places.map((place) => place[1])) * 1.1;
  const across = linear(0, last, [LEFT, right]), up = linear(0, most, [BOTTOM, TOP]);
  const points = places.map((place) => `${at(across(place[0]))},${at(up(place[1]))}`).join(' ');
  const ys = marksOf(most).map((figure) => [up(figure), mark(figure)]);
  const xs = marksOf(last).map((figure) => [across(figure), mark(figure)]);
  const there = line(across(moment.at), TOP, across(moment.at), BOTTOM, 'stroke="#000"') +
    text(across(moment.at) + 4, TOP + 12, moment.name);
  return frame({ title, x, y, right, xs, ys },
    `<polyline points="${points}" fill="none" stroke="${colour(row)}"/>\n${there}`);
}

// ---- traces ----

/** Spans by trace: each with its depth, before its parts, in order of time. What a parent left out is a root. */
function assemble(records) {
  return unique(records.map((span) => span.trace)).map((id) => {
    const spans = records.filter((span) => span.trace === id);
    const known = new Set(spans.map((span) => span.span));
    const above = (span) => (known.has(span.parent) && span.parent !== span.span ? span.parent : undefined);
    const walk = (parent, depth) => spans.filter((span) => above(span) === parent)
      .sort((a, b) => a.start_ns - b.start_ns || (a.span < b.span ? -1 : 1))
      .flatMap((span) => [{ ...span, depth }, ...walk(span.span, depth + 1)]);
    const rows = walk(undefined, 0), roots = rows.filter((row) => row.depth === 0);
    const start = roots.length ? roots[0].start_ns : 0;
    const took = Math.max(0, ...roots.map((root) => root.start_ns + root.duration_ns - start));
    return { id, rows, start, took, name: roots.length ? roots[0].name : '' };
  });
}

// By what the time is spent on: the first that a name begins with.
const SPANS = [['net.quorum', '#5b8bd0'], ['ec.', '#c0504d'], ['config.', '#9b72b0'], ['server.', '#6aa56a'],
  ['store.', '#3d7a3d'], ['dap.', '#e0a030'], ['areo.', '#444c5c'], ['', '#8a93a5']];

/** A bar for each span, where it was in time. */
function waterfall({ id, rows, start, took, name }) {
  const wide = 1200, names = 330, head = 56, height = head + 22 * rows.length + 12;
  const across = (ns) => names + Math.min(Math.max(ns - start, 0) / Math.max(took, 1), 1) * (wide - names - 20);
  const ticks = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((tick) => (took * tick) / 8).map((ns) =>
    line(across(start + ns), head, across(start + ns), height, 'stroke="#ddd"') +
    text(across(start + ns), head - 8, duration(Math.floor(ns)), 'fill="#666" text-anchor="middle" font-size="10"'));
  const bars = rows.map((span, row) => {
    const top = head + 22 * row, from = across(span.start_ns), to = across(span.start_ns + span.duration_ns);
    const fill = SPANS.find(([begin]) => span.name.startsWith(begin))[1], took = duration(span.duration_ns);
    const known = Object.entries(span.attributes ?? {}).map(([name, value]) => `${name} ${value}`);
    const about = [span.name, span.process, took, ...known].join(' · ');
    // How long it took stands where there is room: behind the bar, else in it.
    const label = to < wide - 90 ? text(to + 5, top + 15, took, 'fill="#444" font-size="10"')
      : text(from + 5, top + 15, took, 'fill="#fff" font-size="10"');
    return `<g><title>${escape(about)}</title>\n` +
      text(12 + 12 * span.depth, top + 15, `${span.name}  ${span.process}`, 'xml:space="preserve"') +
      rect(from, top + 4, Math.max(to - from, 1.5), 15, `rx="2" fill="${fill}"`) + label + '</g>\n';
  });
  return svg(wide, height, text(12, 22, `${name} · ${duration(took)} · trace ${id}`, 'font-size="15" font-weight="600"') +
    ticks.join('') + bars.join(''));
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

function traces(report) {
  return {
    title: 'Areo traces',
    made: ['Wheel: zoom. Drag: move. Double click: all again. Rest on a bar: its attributes.'],
    sections: assemble(report.spans).map((trace) => section('', { wide: [['', waterfall(trace)]] })),
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
      point.target, point.clients, whole(throughput.median), whole(throughput.min), whole(throughput.max),
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
      head: ['store', 'clients', 'operations/s', 'min', 'max', 'p50 µs', 'p99 µs', 'p99.9 µs', 'client CPU µs', 'server CPU µs',
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
      if (trace) wide.push([`A ${what} at ${last.target}, ${last.clients} clients`, waterfall(trace)]);
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
  const figures = (ratio) => [ratio.median, ratio.min, ratio.max].map(hundredth);
  return section(`${report.ratios[0].target} against the others`, {
    text: 'Ratios of the same run, in which the stores take turns. Above 1 is more throughput, below 1 is less CPU time per operation.',
    table: {
      texts: 2,
      head: ['against', 'operation', 'bytes', 'clients', 'throughput ratio', 'min', 'max', 'CPU ratio', 'min', 'max'],
      rows: report.ratios.map((one) => [one.with, one.operation, one.size, one.clients, ...figures(one.ratio.throughput),
        ...figures(one.ratio.cpu)]),
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
      head: ['limit', 'unit', 'median', 'min', 'max', 'CPU',
        ...busiest.map((point) => `a ${point.operation} of ${point.size} bytes, ${point.clients} clients`)],
      rows: report.limits.map((limit) => [limit.name, limit.unit,
        ...[limit.takes.median, limit.takes.min, limit.takes.max, limit.cpu.median].map((figure) => figure.toFixed(3)),
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

// What may be varied, what it is called, and in which unit it is drawn.
const VARIED = [['size', 'size, MiB', 2 ** 20], ['servers', 'servers', 1], ['readers', 'readers', 1], ['writers', 'writers', 1],
  ['block_bytes', 'size of blocks, KiB', 2 ** 10], ['k', 'k', 1], ['reconfigurers', 'reconfigurers', 1]];
const QUANTITIES = [['read_ms', 'Latency of a read', 'ms'], ['write_ms', 'Latency of a write', 'ms'],
  ['reconfiguration_ms', 'Latency of a reconfiguration', 'ms'], ['restart_ms', 'Time of a restart', 'ms'],
  ['read_configurations', 'Configurations that a read visits', 'configurations'], ['write_success', 'Writes that prevailed', 'share']];

function paper(report) {
  const settings = report.points.map((point) => point.setting);
  const values = (name) => unique(settings.map((setting) => setting[name]));
  // The number of fragments goes with the servers.
  let varied = VARIED.filter(([name]) => values(name).length > 1 && !(name === 'k' && values('servers').length > 1));
  if (!varied.length) varied = VARIED.slice(0, 1);
  // What most points have.
  const times = (name, value) => settings.filter((setting) => setting[name] === value).length;
  const usual = (name) => {
    const most = Math.max(...values(name).map((value) => times(name, value)));
    const often = values(name).filter((value) => times(name, value) === most);
    return (name === 'servers' ? Math.max : Math.min)(...often);
  };
  const sections = [section(`Against the publication, at scale ${report.scale}`, {
    text: `${[...report.changes, ...(report.not_run ?? [])].join('; ')}. ${report.runs} runs of each point, seed ${report.seed}. ` +
      failures(report),
  })];
  for (const left of values('left')) {
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

function by([name, called, unit], left, points) {
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
          .map((point) => ({ x: point.setting[name] / unit, ...point.values[quantity] })),
      });
      const title = group == null ? what : `${what}, ${group}`;
      const drawn = unique(these.map((point) => point.variant)).map(line);
      pictures.push([title, lines({ title, x: called, y, lines: drawn })]);
    }
  }
  return section(`By ${called}${left == null ? '' : ` (${left})`}`, {
    text: 'Medians over the runs of the means of a run, with minimum and maximum.', pictures,
  });
}

const cells = (ratio) => (ratio ? [ratio.median, ratio.min, ratio.max].map(short) : ['', '', '']);
const perhaps = (figure) => (figure == null ? '' : short(figure));

function measured(report) {
  const names = unique(report.points.flatMap((point) => Object.keys(point.values))).sort();
  return section('All measurements', {
    table: {
      texts: 2,
      head: ['variant', 'at', 'published read_ms', 'of', ...names.flatMap((name) => [name, 'min', 'max'])],
      rows: report.points.map((point) => [point.variant, point.at, perhaps(point.published_read_ms), point.published_at ?? '',
        ...names.flatMap((name) => cells(point.values[name]))]),
    },
  });
}

function compared(report) {
  return section('Ratios of variants', {
    text: 'The first variant divided by the second, of the same run.',
    table: {
      texts: 6,
      head: ['variant', 'by', 'of', 'at', 'published order', 'why not', 'ratio', 'min', 'max', 'published'],
      rows: report.comparisons.map((one) => [one.above, one.below, one.quantity, one.at,
        one.verdict === 'unpublished' ? '' : one.verdict, one.reason, ...cells(one.ratio), perhaps(one.published)]),
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
  const row = (cell) => (row) => `<tr>${row.map((content, place) =>
    `<${cell}${place < texts ? ' class="text"' : ''}>${escape(content)}</${cell}>`).join('')}</tr>\n`;
  return `<div class="scroll"><table>\n<thead>${row('th')(head)}</thead>\n<tbody>\n${rows.map(row('td')).join('')}</tbody></table></div>\n`;
}

function html({ title, made, sections }) {
  const figure = (kind) => ([title, svg]) =>
    `<figure class="${kind}">${kind === 'wide' && title ? `<figcaption>${escape(title)}</figcaption>` : ''}${svg}</figure>\n`;
  const part = (of) => `<section>\n${of.heading ? `<h2>${escape(of.heading)}</h2>\n` : ''}${of.text ? `<p>${escape(of.text)}</p>\n` : ''}` +
    (of.pictures.length ? `<div class="plots">\n${of.pictures.map(figure('plot')).join('')}</div>\n` : '') +
    of.wide.map(figure('wide')).join('') + (of.table ? table(of.table) : '') + '</section>\n';
  return `<h1>${escape(title)}</h1>\n${made.map((line) => `<p class="made">${escape(line)}</p>\n`).join('')}${sections.map(part).join('')}`;
}

/** The pictures of a page, for documents: the name of a file for each, without an end, and the SVG. */
const pictures = ({ sections }) => sections.flatMap(({ heading, pictures, wide }) => [...pictures, ...wide].map(([title, svg]) =>
  [`${heading} ${title}`.split(/[^A-Za-z0-9]+/).filter(Boolean).join('-').toLowerCase(), svg]));
