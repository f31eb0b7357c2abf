// Traces: when each span was, and two traces on one axis.

// By what the time is spent on: the first that a name begins with, its colour, and what the legend calls it.
const SPANS = [['areo.', '#6b7690', 'operation'], ['phase', '#a0a8b8', 'phase'], ['dap.', '#e69f00', 'data access'],
  ['config.', '#cc79a7', 'configurations'], ['net.quorum', '#56b4e9', 'waiting for a quorum'], ['ec.', '#d55e00', 'coding'],
  ['server.', '#009e73', 'work of a server'], ['store.', '#0072b2', 'its disk'], ['', '#8a8a8a', 'other']];
const kind = (span) => SPANS.find(([begin]) => span.name.startsWith(begin));
const WIDE = 1200, ROW = 22;

/** Spans by trace: each with its depth and the span above it, before its parts, in order of time. What a parent left out is a root. */
function assemble(records) {
  return unique(records.map((span) => span.trace)).map((id) => {
    const spans = records.filter((span) => span.trace === id);
    const known = new Set(spans.map((span) => span.span));
    const above = (span) => (known.has(span.parent) && span.parent !== span.span ? span.parent : undefined);
    const walk = (parent, depth) => spans.filter((span) => above(span) === parent)
      .sort((a, b) => a.start_ns - b.start_ns || (a.span < b.span ? -1 : 1))
      .flatMap((span) => [{ ...span, depth, above: parent }, ...walk(span.span, depth + 1)]);
    const rows = walk(undefined, 0), roots = rows.filter((row) => row.depth === 0);
    const start = roots.length ? roots[0].start_ns : 0;
    const took = Math.max(0, ...roots.map((root) => root.start_ns + root.duration_ns - start));
    return { id, rows, start, took, name: roots.length ? roots[0].name : '' };
  });
}

const heading = ({ name, took, start }) =>
  `${name} · ${duration(took)} · ${new Date(start / 1e6).toISOString().replace('T', ' ').replace('Z', ' UTC')}`;

/** What the operation was about, of all that its spans say. `domains` are names by id. */
function about({ rows, id }, domains = {}) {
  const values = (name) => unique(rows.map((span) => span.attributes?.[name]).filter((value) => value != null && value !== ''));
  const first = (name, word) => values(name).slice(0, 1).map(word);
  const { dap, n, k } = rows.find((span) => span.attributes?.dap)?.attributes ?? {};
  const rounds = rows.filter((span) => span.name === 'net.quorum').length, configurations = values('configuration');
  return [
    ...first('key', (key) => `key ${key}`), ...first('domain', (domain) => `domain ${domains[domain] ?? domain}`),
    ...(dap ? [`${dap} [${n},${k}]`] : []),
    ...(configurations.length ? [`configuration ${configurations.join(', ')}`] : []),
    ...first('tag', (tag) => `version ${tag}`), ...first('bytes', (length) => `${length} bytes`),
    ...(rounds ? [`${rounds} ${rounds === 1 ? 'round' : 'rounds'}`] : []),
    ...values('error.type').map((error) => `ERROR ${error}`), `trace ${id}`,
  ].join(' · ');
}

/** Squares with what their colours mean. */
function legend(y, all) {
  let x = 12;
  return all.map(([fill, name]) => {
    const drawn = rect(x, y - 10, 11, 11, `fill="${fill}"`) + text(x + 16, y, name, 'font-size="11"');
    x += 34 + 6.2 * name.length;
    return drawn;
  }).join('');
}

/** Names of columns, and lines at round times. */
function timeAxis(top, bottom, took, across, columns) {
  const [by, unit] = scale(took);
  const ticks = steps(0, took, 8).map((ns) => line(across(ns), top, across(ns), bottom, GRID) +
    text(across(ns), top - 8, ns ? `${Number((ns / by).toPrecision(6))} ${unit}` : '0', 'text-anchor="middle" font-size="10"'));
  const heads = columns.map(([x, name, style = '']) => text(x, top - 8, name, `font-size="10" fill-opacity="0.7" ${style}`));
  return ticks.join('') + heads.join('');
}

/** What is drawn of a span, with its name, its process, its time and its attributes where a mouse rests on it. */
function titled(span, drawn) {
  const known = Object.entries(span.attributes ?? {}).map(([name, value]) => `${name} ${value}`);
  const all = [span.name, span.process, duration(span.duration_ns), ...known].join(' · ');
  return `<g><title>${escape(all)}</title>\n${drawn}</g>\n`;
}

const RIGHT = 'text-anchor="end"';
/** From 0 to so many nanoseconds, right of the columns. */
const axis = (from, took) => (ns) => from + Math.min(Math.max(ns, 0) / Math.max(took, 1), 1) * (WIDE - from - 30);

/** A bar for each span, where it was in time. */
function waterfall({ rows, start, took }) {
  const top = 50, bottom = top + ROW * rows.length + 12;
  const across = axis(440, took);
  const bars = rows.map((span, row) => {
    const y = top + ROW * row, from = across(span.start_ns - start), to = across(span.start_ns - start + span.duration_ns);
    return titled(span, text(12 + 12 * span.depth, y + 15, span.name) + text(270, y + 15, span.process) +
      text(420, y + 15, duration(span.duration_ns), RIGHT) +
      rect(from, y + 4, Math.max(to - from, 1.5), 15, `rx="2" fill="${kind(span)[1]}"`));
  });
  const kinds = SPANS.filter((one) => rows.some((span) => kind(span) === one));
  return svg(WIDE, bottom, legend(20, kinds.map(([, fill, name]) => [fill, name])) +
    timeAxis(top, bottom, took, across, [[12, 'span'], [270, 'process'], [420, 'time', RIGHT]]) + bars.join(''));
}

/** The spans of two traces, laid upon each other: each row is a depth with a span of the first, of the second, or of both. What one server
 *  did is laid upon what that server did. */
function pairs(traces) {
  const key = (span) => `${span.name} ${span.process}`;
  const below = (above, which) => (above === null ? [] : traces[which].rows.filter((row) => row.above === above));
  const merge = (parents, depth) => {
    const [first, second] = parents.map(below);
    // Two operations of any kind are compared.
    const areRoots = depth === 0 && first.length === 1 && second.length === 1;
    const same = (one, other) => areRoots || key(one) === key(other);
    const left = [...second];
    const rows = first.map((one) => {
      const place = left.findIndex((other) => same(one, other));
      return [one, place < 0 ? null : left.splice(place, 1)[0]];
    });
    return [...rows, ...left.map((other) => [null, other])].flatMap((pair) =>
      [{ depth, pair }, ...merge(pair.map((span) => span && span.span), depth + 1)]);
  };
  return merge([undefined, undefined], 0);
}

/** A signed duration: how much more the second took. */
const difference = (first, second) =>
  (second === first ? '0' : `${second > first ? '+' : '−'}${duration(Math.abs(second - first))}`);

/** Two traces on one axis, each from its own begin on. */
function beside(traces) {
  const rows = pairs(traces), took = Math.max(...traces.map((trace) => trace.took));
  const high = 34, top = 50, bottom = top + high * rows.length + 12, across = axis(560, took);
  const fills = [COLOURS[0], COLOURS[1]];
  const drawn = rows.map(({ depth, pair }, row) => {
    const y = top + high * row, [first, second] = pair, span = first ?? second;
    const called = unique(pair.filter(Boolean).map((span) => span.name)).join(' | ');
    const bars = pair.map((span, which) => {
      if (!span) return '';
      const from = across(span.start_ns - traces[which].start), to = across(span.start_ns - traces[which].start + span.duration_ns);
      return titled(span, text(410 + 75 * which, y + 20, duration(span.duration_ns), RIGHT) +
        rect(from, y + 5 + 13 * which, Math.max(to - from, 1.5), 11, `rx="2" fill="${fills[which]}"`));
    });
    const more = first && second ? text(550, y + 20, difference(first.duration_ns, second.duration_ns), RIGHT) : '';
    return text(12 + 12 * depth, y + 20, called) + text(270, y + 20, span.process) + bars.join('') + more;
  });
  const columns = [[12, 'span'], [270, 'process'], [410, 'A', RIGHT], [485, 'B', RIGHT], [550, 'B − A', RIGHT]];
  return svg(WIDE, bottom, legend(20, fills.map((fill, which) => [fill, `${'AB'[which]}, ${traces[which].name}`])) +
    timeAxis(top, bottom, took, across, columns) + drawn.join(''));
}

