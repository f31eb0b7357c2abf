// Pictures: an SVG each, as text. `view.html` gives them the colours of the page; saved ones are dark on white.

// Colours that colour-blind readers can distinguish (Okabe and Ito), and that are seen on white and on black.
const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#d55e00', '#cc79a7', '#56b4e9', '#808080'];
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
  `${rect(0, 0, width, height, 'fill="#fff" class="sheet"')}${content}</svg>\n`;
const GRID = 'stroke="#000" stroke-opacity="0.12"';

const linear = (from, to, [low, high]) => (figure) => low + ((figure - from) / (to - from)) * (high - low);
const powers = (from, to, ends) => {
  const of = linear(Math.log(from), Math.log(to), ends);
  return (figure) => of(Math.log(Math.max(figure, LEAST)));
};

/** A figure at an axis. */
function mark(figure) {
  const [by, unit] = figure < 1e3 ? [1, ''] : figure < 1e6 ? [1e3, 'k'] : [1e6, 'M'];
  return Number((figure / by).toPrecision(3)) + unit;
}

/** A number of bytes at an axis. */
function bytes(figure) {
  const unit = Math.min(Math.floor(Math.log2(Math.max(figure, 1)) / 10), 3);
  return `${Number((figure / 1024 ** unit).toPrecision(3))} ${['B', 'KiB', 'MiB', 'GiB'][unit]}`;
}

/** Round figures of an axis, at most about so many: their distance is 1, 2 or 5 times a power of ten. */
function steps(from, to, most) {
  const least = (to - from) / most;
  if (!(least > 0)) return [from];
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= least * (1 - 1e-9));
  const first = Math.ceil(from / step - 1e-9), last = Math.floor(to / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, place) => (first + place) * step);
}

/** Figures of an axis of powers that are easily read: powers of ten, of a short axis 2 and 5 times those, of a shorter one round steps. */
function marksOfPowers(from, to) {
  const low = Math.floor(Math.log10(from)), high = Math.ceil(Math.log10(to));
  const marks = [];
  for (let power = low; power <= high; power++) {
    for (const digit of high - low > 3 ? [1] : [1, 2, 5]) marks.push(digit * 10 ** power);
  }
  const seen = marks.filter((figure) => from <= figure && figure <= to);
  return seen.length < 3 ? steps(from, to, 8) : seen;
}

/** Those of the marks along an axis of which each has room for its name. */
function apart(marks) {
  let free = -Infinity;
  return marks.filter(([place, name]) => {
    const half = 3.3 * name.length + 3;
    if (place - half < free) return false;
    free = place + half;
    return true;
  });
}

/** Title, axes with their marks, and what is between them. */
function frame({ title, x = '', y = '', left = LEFT, right, xs = [], ys }, content) {
  const marks = ys.map(([place, name]) =>
    line(left, place, right, place, GRID) + text(left - 6, place + 4, name, 'text-anchor="end" font-size="11"'));
  const below = xs.map(([place, name]) =>
    line(place, TOP, place, BOTTOM, GRID) + text(place, BOTTOM + 15, name, 'text-anchor="middle" font-size="11"'));
  const middle = (left + right) / 2;
  return svg(WIDTH, HEIGHT,
    text(middle, 20, title, 'text-anchor="middle" font-size="15"') + marks.join('') + below.join('') +
    line(left, TOP, left, BOTTOM, 'stroke="#000"') + line(left, BOTTOM, right, BOTTOM, 'stroke="#000"') +
    text(middle, HEIGHT - 12, x, 'text-anchor="middle"') +
    text(0, 0, y, `text-anchor="middle" transform="translate(16 ${(TOP + BOTTOM) / 2}) rotate(-90)"`) + content);
}

const names = (all) => all.map((name, row) =>
  line(BESIDE_NAMES + 12, 44 + 20 * row, BESIDE_NAMES + 28, 44 + 20 * row, `stroke="${colour(row)}" stroke-width="3"`) +
  text(BESIDE_NAMES + 34, 48 + 20 * row, name)).join('');

/** Marks of an axis of figures that begins at 0. */
const marksOf = (most, place) => steps(0, most, 7).map((figure) => [place(figure), mark(figure)]);

/** Lines over axes of powers, with medians, and bars from the least to the most. `called` writes a figure along the axis. */
function lines({ title, x, y, called = mark, lines }) {
  const places = lines.flatMap((line) => line.places);
  const range = (all) => all.length
    ? [Math.max(Math.min(...all), LEAST) / 1.3, Math.max(...all, LEAST) * 1.3] : [LEAST, 1];
  const [left, right] = range(places.map((place) => place.x));
  const [low, high] = range(places.flatMap((place) => [place.min, place.max]));
  const across = powers(left, right, [LEFT, BESIDE_NAMES]), up = powers(low, high, [BOTTOM, TOP]);
  const where = unique(places.map((place) => Math.max(place.x, LEAST))).sort((a, b) => a - b);
  const xs = apart(where.map((figure) => [across(figure), called(figure)]));
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

/** A bar for each name, from 0 to the median, with a line from the least to the most, and the median behind it. */
function bars({ title, x, bars }) {
  const left = 16 + 7 * Math.max(4, ...bars.map((bar) => bar.name.length)), right = WIDTH - 20;
  const most = Math.max(LEAST, ...bars.map((bar) => bar.max)) * 1.15;
  const across = linear(0, most, [left, right]), room = (BOTTOM - TOP) / Math.max(bars.length, 1);
  const middle = (row) => TOP + room * (row + 0.5), thick = Math.min(room * 0.6, 20);
  const drawn = bars.map((bar, row) =>
    rect(left, middle(row) - thick / 2, across(bar.median) - left, thick, `fill="${colour(0)}"`) +
    line(across(bar.min), middle(row), across(bar.max), middle(row), `stroke="${colour(1)}" stroke-width="3"`) +
    text(across(bar.max) + 6, middle(row) + 4, short(bar.median), 'font-size="11"'));
  const ys = bars.map((bar, row) => [middle(row), bar.name]);
  return frame({ title, x, left, right, xs: marksOf(most, across), ys }, drawn.join(''));
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
  return frame({ title, y, right: BESIDE_NAMES, ys: marksOf(most, up) }, drawn.join('') + names(parts));
}

/** Figures over time, both from 0 on, with a moment that is marked. */
function timeline({ title, x, y, places, moment, row }) {
  const right = WIDTH - 20;
  const last = Math.max(LEAST, ...places.map((place) => place[0]));
  const most = Math.max(1, ...places.map((place) => place[1])) * 1.1;
  const across = linear(0, last, [LEFT, right]), up = linear(0, most, [BOTTOM, TOP]);
  const points = places.map((place) => `${at(across(place[0]))},${at(up(place[1]))}`).join(' ');
  const there = line(across(moment.at), TOP, across(moment.at), BOTTOM, 'stroke="#000"') +
    text(across(moment.at) + 4, TOP + 12, moment.name);
  return frame({ title, x, y, right, xs: marksOf(last, across), ys: marksOf(most, up) },
    `<polyline points="${points}" fill="none" stroke="${colour(row)}"/>\n${there}`);
}

