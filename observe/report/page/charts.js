'use strict';
// All that comes from jobs and hosts is put into the page as text, never as markup.
const $ = (selector, from = document) => from.querySelector(selector);
const put = (parent, nodes) => { for (const n of nodes.flat(Infinity)) if (n != null) parent.append(n); return parent; };
const set = (node, attrs) => {
  for (const [k, v] of Object.entries(attrs || {})) k.startsWith('on') ? node.addEventListener(k.slice(2), v) : node.setAttribute(k, v);
  return node;
};
const el = (tag, attrs, ...nodes) => put(set(document.createElement(tag), attrs), nodes);
const svg = (tag, attrs, ...nodes) => put(set(document.createElementNS('http://www.w3.org/2000/svg', tag), attrs), nodes);
const range = n => Array.from({length: n}, (_, i) => i);
const clamp = (v, low, high) => Math.max(low, Math.min(high, v));
const swatch = color => { const i = el('i'); i.style.background = color; return i; };
const css = name => `var(--${name})`;

// Numbers and times as people read them.
const two = n => String(Math.floor(n)).padStart(2, '0');
const many = n => n.toLocaleString('en'), whole = v => v === Math.round(v) ? many(v) : '';
const isPlain = v => v === 0 || Math.abs(v) >= 1e-4 && Math.abs(v) < 1e6 || !Number.isFinite(v);
const digits = v => isPlain(v) ? String(+v.toPrecision(5)) : v.toExponential(3);
function duration(s) {
  if (s < 0.9995) return Math.round(s * 1000) + ' ms';
  if (s < 9.995) return s.toFixed(2) + ' s';
  if (s < 59.95) return s.toFixed(1) + ' s';
  s = Math.round(s);
  if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
  return s < 86400 ? `${Math.floor(s / 3600)}h ${two(s / 60 % 60)}m` : `${Math.floor(s / 86400)}d ${two(s / 3600 % 24)}h`;
}
function brief(s) { // for an axis
  if (s < 60) return +s.toFixed(3) + ' s';
  if (s < 3600) return Math.floor(s / 60) + 'm' + (s % 60 ? two(s % 60) : '');
  return s < 86400 ? Math.floor(s / 3600) + 'h' + (s % 3600 ? two(s / 60 % 60) : '') : +(s / 86400).toFixed(2) + 'd';
}
function size(n) {
  let unit = 0;
  for (; n >= 1023.5 && unit < 6; unit++) n /= 1024;
  return (unit && n < 9.95 ? n.toFixed(1) : Math.round(n)) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][unit];
}
function clock(ms) {
  const t = new Date(ms);
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
}
const floor = 16 * 1024 * 1024; // a size of memory up to this says only that it was not more
const bytes = v => v > 0 && v <= floor ? '<16 MiB' : size(v);
const show = (c, v) => ({duration, size: bytes}[c.type] || digits)(v);
const colors = ['#2f78cf', '#d78a1c', '#23998a', '#b14f9b', '#7a8a2a', '#d2453a', '#5b57c0', '#7f8894'];

// One tooltip for everything.
const tip = $('#tip');
function tell(e, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = clamp(e.clientX + 14, 4, innerWidth - box.width - 4) + 'px';
  tip.style.top = (e.clientY + 18 + box.height > innerHeight ? e.clientY - box.height - 12 : e.clientY + 18) + 'px';
}
const tells = (node, text) => set(node, {onpointermove: e => tell(e, text(e)), onpointerleave: () => tell()});

// steps returns round numbers between low and high, about n of them.
function steps(low, high, n) {
  const raw = (high - low) / n || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(m => m * power >= raw * 0.999) * power, first = Math.ceil(low / step - 1e-9);
  return range(Math.floor(high / step + 1e-9) - first + 1).map(i => (first + i) * step);
}
const spans = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
function timeSteps(low, high, n) {
  const step = spans.find(s => s >= (high - low) / n) || 604800 * Math.ceil((high - low) / n / 604800);
  return high - low < n ? steps(low, high, n) : steps(low / step, high / step, high / step - low / step).map(v => v * step);
}

// caption holds the title of a chart, a note, and its legend: the name of each series, or nodes.
const caption = (title, note, legend) => el('figcaption', null, el('b', {title}, title), note ? el('span', null, note) : null,
  legend.map(s => el('span', {class: 'key'}, s.color ? [swatch(s.color), s.name] : s)));

// plot draws series {name, color, kind: area, line, dots or bars, points: [x, y, spread]} into a figure.
function plot(figure, o) {
  const W = Math.max(260, figure.clientWidth), H = o.height || 170, left = o.left || 46, right = W - 8, top = 8, base = H - 23;
  const points = o.series.flatMap(s => s.points), fx = o.log ? Math.log10 : v => v, nameX = o.labels ? v => o.labels[v] : o.fx || digits, nameY = o.fy || digits;
  const xs = [...new Set(points.map(p => p[0]))].sort((a, b) => a - b), [x0, x1] = o.x || [xs[0], xs.at(-1)];
  let y0 = o.zero ? 0 : Math.min(...points.map(p => p[1] - (p[2] || 0))), y1 = Math.max(o.atLeast ?? y0, ...points.map(p => p[1] + (p[2] || 0)));
  if (!(y1 > y0)) y1 = y0 + Math.abs(y0 || 1) * 0.1;
  if (!o.zero) [y0, y1] = [y0 - (y1 - y0) * 0.06, y1 + (y1 - y0) * 0.06];
  let ys = steps(y0, y1, H < 140 ? 3 : 5);
  if (o.zero) { y1 = Math.ceil(y1 / ys[1] - 1e-9) * ys[1]; ys = steps(y0, y1, Math.round(y1 / ys[1])); } // up to a tick
  const X = v => left + (fx(v) - fx(x0)) / (fx(x1) - fx(x0) || 1) * (right - left), Y = v => base - (v - y0) / (y1 - y0) * (base - top);
  const g = svg('svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': o.title});
  const line = (kind, a, b, c, d) => svg('line', {class: kind, x1: a, y1: b, x2: c, y2: d});
  for (const v of ys) g.append(line('grid', left, Y(v), right, Y(v)), svg('text', {x: left - 6, y: Y(v) + 4, 'text-anchor': 'end'}, nameY(v)));
  let free = -Infinity; // labels do not overlap
  for (const v of o.xs || (o.time ? timeSteps : steps)(x0, x1, Math.max(2, Math.floor(W / 90)))) {
    const half = nameX(v).length * 3.2;
    if (X(v) - half < free) continue;
    free = X(v) + half + 8;
    const at = clamp(X(v), left + half - 20, W - half);
    g.append(line('axis', X(v), base, X(v), base + 4), svg('text', {x: at, y: base + 16, 'text-anchor': 'middle'}, nameX(v)));
  }
  g.append(line('axis', left, base, right, base));
  for (const {kind, color, points} of o.series.filter(s => s.points.length)) {
    const path = points.map(p => `${X(p[0]).toFixed(1)},${Y(p[1]).toFixed(1)}`).join(' ');
    if (kind === 'bars') {
      const end = i => i + 1 < points.length ? points[i + 1][0] : x1;
      points.forEach(([x, y], i) => y && g.append(svg('rect', {x: X(x) + 0.5, width: Math.max(1, X(end(i)) - X(x) - 1), y: Y(y), height: base - Y(y), fill: color})));
      continue;
    }
    if (kind === 'area') g.append(svg('polygon', {points: `${X(points[0][0])},${base} ${path} ${X(points.at(-1)[0])},${base}`, fill: color, 'fill-opacity': 0.25}));
    g.append(svg('polyline', {points: path, fill: 'none', stroke: color, 'stroke-width': 1.5, 'stroke-linejoin': 'round'}));
    for (const [x, y, spread] of kind === 'dots' ? points : []) {
      if (spread) g.append(set(line('', X(x), Y(y - spread), X(x), Y(y + spread)), {stroke: color, 'stroke-opacity': 0.55}));
      g.append(svg('circle', {cx: X(x), cy: Y(y), r: 3, fill: color}));
    }
  }
  const cross = set(line('cross', 0, top, 0, base), {visibility: 'hidden'});
  g.append(cross, tells(svg('rect', {x: left, y: 0, width: W - left, height: H, fill: 'transparent'}), e => {
    const box = g.getBoundingClientRect(), at = (e.clientX - box.left) * W / box.width, off = v => Math.abs(X(v) - at);
    // Of bars the one below the pointer, else the nearest point.
    const x = o.series[0].kind === 'bars' ? xs.findLast(v => X(v) <= at) ?? xs[0] : xs.reduce((a, b) => off(b) < off(a) ? b : a);
    set(cross, {x1: X(x), x2: X(x), visibility: 'visible'});
    const texts = o.series.map(s => [s.name, s.points.find(p => p[0] === x)]).filter(s => s[1]).map(([name, p]) => `${name}: ${nameY(p[1])}${p[2] ? ' ± ' + digits(p[2]) : ''}${p[3] ? ', of ' + p[3] : ''}`);
    return [nameX(x) + (o.until ? ' – ' + nameX(o.until(x)) : ''), ...texts].join('\n');
  }));
  g.addEventListener('pointerleave', () => set(cross, {visibility: 'hidden'}));
  figure.replaceChildren(caption(o.title, o.note, o.series), g);
}

// histogram returns a function that draws one, on a logarithmic scale where the values need it;
// null: the values do not differ.
function histogram(figure, title, values, format) {
  values = values.filter(v => v > 0 && Number.isFinite(v)).sort((a, b) => a - b);
  const low = values[0], high = values.at(-1), log = high / low > 50, bins = 30;
  if (!(high > low)) return null;
  const edge = i => log ? low * (high / low) ** (i / bins) : low + (high - low) * i / bins, points = range(bins).map(i => [edge(i), 0]);
  let bin = 0;
  for (const v of values) {
    while (bin + 1 < bins && v >= edge(bin + 1)) bin++;
    points[bin][1]++;
  }
  const quantile = q => format(values[Math.min(values.length - 1, Math.floor(q * values.length))]);
  return () => plot(figure, {
    title, note: `median ${quantile(0.5)}, 95 % below ${quantile(0.95)}`, height: 130, left: 46, log, x: [low, high], zero: true, fx: format, fy: whole,
    xs: [low, edge(bins / 2), high], until: x => edge(points.findIndex(p => p[0] === x) + 1), series: [{name: 'jobs', color: colors[0], kind: 'bars', points}],
  });
}

const ramp = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]]; // viridis
function shade(t) {
  const i = Math.min(ramp.length - 2, Math.floor(t * (ramp.length - 1))), f = t * (ramp.length - 1) - i;
  return ramp[i].map((v, k) => Math.round(v + (ramp[i + 1][k] - v) * f));
}

// scale is the legend of shades.
const scale = (low, high) => [low + ' ', range(8).map(i => swatch(`rgb(${shade(i / 7)})`)), ' ' + high];

// heat draws compute(at(text down, text across)) for all texts of the axes. of(text down, text across)
// says on how many jobs it is based.
function heat(figure, {x, y, at, of, note, compute, title, format, choose}) {
  const name = (axis, text) => axis.label ? axis.label(text) : text;
  const W = Math.max(260, figure.clientWidth), left = y.c ? clamp(9 + 6.6 * Math.max(...y.texts.map(t => name(y, t).length)), 40, 120) : 8;
  const wide = (W - left - 6) / x.texts.length, high = clamp(wide * 0.7, 14, clamp(280 / y.texts.length, 14, 64)), H = high * y.texts.length + 26;
  const values = y.texts.map(t => x.texts.map(u => { const v = at(t, u); return v && compute(v); })), known = values.flat().filter(Number.isFinite);
  const low = Math.min(...known), top = Math.max(...known), g = svg('svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': title});
  const cut = (t, room) => t.length * 6.4 > room ? t.slice(0, Math.max(1, Math.floor(room / 6.4) - 1)) + '…' : t;
  const text = (x, y, anchor, label) => svg('text', {x, y, 'text-anchor': anchor, 'pointer-events': 'none'}, label);
  const cell = (v, i, k) => {
    const where = [y.c && [y, y.texts[i]], [x, x.texts[k]]].filter(p => p), none = v === undefined, based = of(y.texts[i], x.texts[k]), partial = based.includes(' of ');
    const rgb = Number.isFinite(v) ? shade(top > low ? (v - low) / (top - low) : 0.5) : null, label = (none ? '' : Number.isFinite(v) ? format(+v.toPrecision(4)) : String(v)) + (partial ? '*' : '');
    const rect = svg('rect', {class: 'cell', x: left + k * wide + 0.5, y: i * high + 0.5, width: Math.max(1, wide - 1), height: high - 1, rx: 2,
      fill: rgb ? `rgb(${rgb})` : css('queued'), onclick: () => choose(where)});
    const said = (none ? 'no job that succeeded has a number' : `${title}: ${format(v)}`) + `\nbased on ${based}`;
    g.append(tells(rect, () => [...where.map(([axis, t]) => `${axis.c.title} = ${t}`), said].join('\n')));
    if (!label || label.length * 6.6 > wide - 4) return;
    const t = text(left + (k + 0.5) * wide, i * high + high / 2 + 4, 'middle', label);
    if (rgb) t.style.fill = rgb[0] * 0.3 + rgb[1] * 0.6 + rgb[2] * 0.1 > 130 ? '#111' : '#fff';
    g.append(t);
  };
  values.forEach((row, i) => {
    if (y.c) g.append(text(left - 6, i * high + high / 2 + 4, 'end', cut(name(y, y.texts[i]), left - 8)));
    row.forEach((v, k) => cell(v, i, k));
  });
  let free = -Infinity;
  x.texts.forEach((t, k) => {
    const label = cut(name(x, t), Math.max(wide, 60)), half = label.length * 3.3, mid = left + (k + 0.5) * wide;
    if (mid - half < free) return;
    free = mid + half + 6;
    g.append(text(mid, H - 10, 'middle', label));
  });
  const axes = `${y.c ? y.c.title + ' down, ' : ''}${x.c.title} across${x.more || y.more ? `, the first ${x.texts.length} × ${y.texts.length}` : ''}`;
  figure.replaceChildren(caption(`${title}: ${axes}`, note && note + ' (*)', known.length ? [scale(format(low), format(top)), [swatch(css('queued')), 'no number']] : []), g);
}
