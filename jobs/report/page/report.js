'use strict';
// All that comes from jobs and hosts is put into the page as text, never as markup.
const $ = (selector, from = document) => from.querySelector(selector);
const put = (parent, nodes) => { for (const n of nodes.flat()) if (n != null) parent.append(n); return parent; };
const set = (node, attrs) => {
  for (const [k, v] of Object.entries(attrs || {})) if (k.startsWith('on')) node.addEventListener(k.slice(2), v); else node.setAttribute(k, v);
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
const digits = v => !Number.isFinite(v) ? String(v) : Math.abs(v) >= 1e-4 && Math.abs(v) < 1e6 || v === 0 ? String(+v.toPrecision(5)) : v.toExponential(3);
function duration(s) {
  if (s < 0.9995) return Math.round(s * 1000) + ' ms';
  if (s < 9.995) return s.toFixed(2) + ' s';
  if (s < 59.95) return s.toFixed(1) + ' s';
  s = Math.round(s);
  if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
  return s < 86400 ? `${Math.floor(s / 3600)}h ${two(s / 60 % 60)}m` : `${Math.floor(s / 86400)}d ${two(s / 3600 % 24)}h`;
}
function size(n) {
  let unit = 0;
  for (; n >= 1023.5 && unit < 6; unit++) n /= 1024;
  return (unit && n < 9.95 ? n.toFixed(1) : Math.round(n)) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][unit];
}
const clock = ms => { const t = new Date(ms); return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`; };
const floor = 16 * 1024 * 1024; // a size of memory up to this says only that it was not more
const show = (c, v) => c.type === 'duration' ? duration(v) : c.type === 'size' ? (v > 0 && v <= floor ? '<16 MiB' : size(v)) : digits(v);

const kinds = ['succeeded', 'failed', 'timed_out', 'cancelled', 'lost', 'superseded', 'running'];
const words = s => s.replaceAll('_', ' ');
const series = ['#2f78cf', '#d78a1c', '#23998a', '#b14f9b', '#7a8a2a', '#d2453a', '#5b57c0', '#7f8894'];

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
  const step = [1, 2, 5, 10].find(m => m * power >= raw * 0.999) * power;
  return range(Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1).map(i => (Math.ceil(low / step - 1e-9) + i) * step);
}
const spans = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
function timeSteps(low, high, n) {
  const step = spans.find(s => s >= (high - low) / n) || 604800 * Math.ceil((high - low) / n / 604800);
  return high - low < n ? steps(low, high, n) : steps(low / step, high / step, high / step - low / step).map(v => v * step);
}
const brief = s => s < 60 ? +s.toFixed(3) + ' s' : s < 3600 ? Math.floor(s / 60) + 'm' + (s % 60 ? two(s % 60) : '') : s < 86400 ? Math.floor(s / 3600) + 'h' + (s % 3600 ? two(s / 60 % 60) : '') : +(s / 86400).toFixed(2) + 'd';

// plot draws series {name, color, kind: area, line or bars, points: [x, y, spread]} into a figure.
function plot(figure, o) {
  const W = Math.max(260, figure.clientWidth), H = o.height || 170, left = o.left || 46, right = 8, top = 8, bottom = o.labels || o.xs ? 24 : 22;
  const points = o.series.flatMap(s => s.points), fx = o.log ? Math.log10 : v => v;
  const [x0, x1] = o.x || [Math.min(...points.map(p => p[0])), Math.max(...points.map(p => p[0]))];
  const lows = points.map(p => p[1] - (p[2] || 0)), highs = points.map(p => p[1] + (p[2] || 0));
  let y0 = o.zero ? 0 : Math.min(...lows), y1 = Math.max(...highs, o.zero ? o.atLeast || 0 : -Infinity);
  if (!(y1 > y0)) [y0, y1] = o.zero ? [0, 1] : [y0 - Math.abs(y0 || 1) * 0.1, y1 + Math.abs(y1 || 1) * 0.1];
  if (!o.zero) { const pad = (y1 - y0) * 0.06; y0 -= pad; y1 += pad; }
  let ys = steps(y0, y1, H < 140 ? 3 : 5);
  if (o.zero) { y1 = Math.ceil(y1 / ys[1] - 1e-9) * ys[1]; ys = steps(y0, y1, Math.round(y1 / ys[1])); } // up to a tick
  const X = v => left + (fx(v) - fx(x0)) / (fx(x1) - fx(x0) || 1) * (W - left - right);
  const Y = v => H - bottom - (v - y0) / (y1 - y0) * (H - top - bottom);
  const g = svg('svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': o.title});
  for (const v of ys) {
    put(g, [svg('line', {class: 'grid', x1: left, x2: W - right, y1: Y(v), y2: Y(v)}), svg('text', {x: left - 6, y: Y(v) + 4, 'text-anchor': 'end'}, (o.fy || digits)(v))]);
  }
  let ticks = o.xs || (o.time ? timeSteps : steps)(x0, x1, Math.max(2, Math.floor(W / 90)));
  if (o.log && !o.xs) ticks = range(Math.floor(fx(x1)) - Math.ceil(fx(x0)) + 1).map(i => 10 ** (Math.ceil(fx(x0)) + i));
  let free = -Infinity; // labels do not overlap
  for (const v of ticks) {
    const label = o.labels ? o.labels[v] : (o.fx || digits)(v), half = label.length * 3.2;
    if (X(v) - half < free) continue;
    free = X(v) + half + 8;
    put(g, [svg('line', {class: 'axis', x1: X(v), x2: X(v), y1: H - bottom, y2: H - bottom + 4}), svg('text', {x: clamp(X(v), left + half - 20, W - half), y: H - bottom + 16, 'text-anchor': 'middle'}, label)]);
  }
  g.append(svg('line', {class: 'axis', x1: left, x2: W - right, y1: H - bottom, y2: H - bottom}));
  for (const s of o.series) {
    const at = s.points.map(p => `${X(p[0]).toFixed(1)},${Y(p[1]).toFixed(1)}`);
    if (s.kind === 'bars') {
      s.points.forEach(([x, y], i) => { const next = i + 1 < s.points.length ? s.points[i + 1][0] : x1; if (y) g.append(svg('rect', {x: X(x) + 0.5, width: Math.max(1, X(next) - X(x) - 1), y: Y(y), height: H - bottom - Y(y), fill: s.color})); });
    } else if (at.length) {
      if (s.kind === 'area') g.append(svg('polygon', {points: `${X(s.points[0][0])},${Y(0)} ${at.join(' ')} ${X(s.points.at(-1)[0])},${Y(0)}`, fill: s.color, 'fill-opacity': 0.25}));
      g.append(svg('polyline', {points: at.join(' '), fill: 'none', stroke: s.color, 'stroke-width': 1.5, 'stroke-linejoin': 'round'}));
      if (s.kind === 'dots') for (const p of s.points) put(g, [p[2] ? svg('line', {x1: X(p[0]), x2: X(p[0]), y1: Y(p[1] - p[2]), y2: Y(p[1] + p[2]), stroke: s.color, 'stroke-opacity': 0.55}) : null, svg('circle', {cx: X(p[0]), cy: Y(p[1]), r: 3, fill: s.color})]);
    }
  }
  const cross = svg('line', {class: 'cross', y1: top, y2: H - bottom, visibility: 'hidden'}), xs = [...new Set(points.map(p => p[0]))].sort((a, b) => a - b);
  g.append(cross, tells(svg('rect', {x: left, y: 0, width: W - left, height: H, fill: 'transparent'}), e => {
    const box = g.getBoundingClientRect(), px = (e.clientX - box.left) * W / box.width;
    let x = xs.findLast(v => X(v) <= px) ?? xs[0]; // of bars the one below the pointer, else the nearest
    if (o.series[0].kind !== 'bars') x = xs.reduce((a, b) => Math.abs(X(b) - px) < Math.abs(X(a) - px) ? b : a, xs[0]);
    set(cross, {x1: X(x), x2: X(x), visibility: 'visible'});
    const lines = o.series.map(s => [s.name, s.points.find(p => p[0] === x)]).filter(l => l[1]).map(([name, p]) => `${name}: ${(o.fy || digits)(p[1])}${p[2] ? ' ± ' + digits(p[2]) : ''}`);
    return [o.labels ? o.labels[x] : (o.fx || digits)(x) + (o.until ? ' – ' + (o.fx || digits)(o.until(x)) : ''), ...lines].join('\n');
  }));
  g.addEventListener('pointerleave', () => set(cross, {visibility: 'hidden'}));
  figure.replaceChildren(caption(o.title, o.note, o.series.length > 1 && !o.note ? o.series : []), g);
}

const caption = (title, note, series) => el('figcaption', null, el('b', {title}, title), note ? el('span', null, note) : null, series.map(s => el('span', null, swatch(s.color), s.name)));

async function unpack() {
  const text = atob(JSON.parse($('#data').textContent).replace(/-/g, '+').replace(/_/g, '/'));
  const packed = Uint8Array.from(text, c => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}

function start(D) {
  const A = D.attempts, n = D.rows, redraws = [];
  const draws = f => { redraws.push(f); f(); };
  // Columns: text(row), num(row), and alike(row), a number that is the same for the same text.
  for (const c of D.columns) {
    if (c.n) c.n = c.n.map(v => typeof v === 'string' ? {nan: NaN, inf: Infinity, '-inf': -Infinity}[v] : v);
    c.alike = c.i ? r => c.i[r] : r => r;
    c.num = !c.n ? () => null : c.d ? r => c.n[c.alike(r)] : r => c.n[r];
    c.text = !c.d ? r => c.n[r] == null ? '' : show(c, c.n[r]) : c.type === 'time' ? r => c.d[c.alike(r)] && clock(Date.parse(c.d[c.alike(r)])) : r => c.d[c.alike(r)];
    c.right = !c.d || c.n && c.n.some(v => v != null) && c.n.every((v, i) => v != null || c.d[i] === '');
    c.title = {elapsed_seconds: 'time', cpu_seconds: 'CPU time', max_rss_bytes: 'memory', last_line: 'last line of stderr'}[c.name] || c.name;
  }
  const aliases = {time: 'elapsed_seconds', cpu: 'cpu_seconds', mem: 'max_rss_bytes', id: 'job'};
  const exact = name => D.columns.find(c => c.name === name);
  const column = name => exact(name) || exact(aliases[name.toLowerCase()]) || D.columns.find(c => c.name.toLowerCase() === name.toLowerCase());
  const fact = name => exact('dcs.' + name) || exact(name);
  const rowOf = new Map(range(n).map(r => [fact('job').num(r), r]));

  // The table: filter, order, and the rows that can be seen.
  const box = $('#table'), head = $('thead tr', box), body = $('tbody', box), filter = $('#filter'), high = 28;
  let rows = range(n), sorted = {column: null, desc: false}, selected = -1, all = false;
  const quote = s => '"' + s.replace(/["\\]/g, '\\$&') + '"', plain = s => s.replace(/"((?:[^"\\]|\\.)*)"?/g, (_, q) => q.replace(/\\(.)/g, '$1'));
  const units = {ms: 0.001, s: 1, m: 60, h: 3600, d: 86400}, bytes = {k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40};
  function number(c, s) {
    const m = /^([-+]?(?:\d[\d.]*|\.\d+)(?:e[-+]?\d+)?)([a-z]*)$/i.exec(s);
    return !m ? NaN : m[1] * (m[2] ? (c.type === 'size' ? bytes[m[2][0].toLowerCase()] : units[m[2]]) ?? NaN : 1);
  }
  // condition returns a test of rows for one term of the filter.
  function condition(term) {
    const m = /^([^<>=!~"]+)(>=|<=|!=|=|<|>|~)(.*)$/.exec(term), c = m && column(m[1]);
    if (!m) {
      const want = plain(term).toLowerCase(), texts = D.columns.filter(c => c.d).map(c => [c, c.d.map(t => t.toLowerCase().includes(want))]);
      return r => texts.some(([c, has]) => has[c.alike(r)]);
    }
    if (!c) throw new Error('There is no column ' + m[1]);
    const text = plain(m[3]), want = number(c, text), low = text.toLowerCase(), op = m[2];
    if (op === '~') return r => c.text(r).toLowerCase().includes(low);
    const same = r => c.num(r) != null && !Number.isNaN(want) ? c.num(r) === want : c.text(r) === text;
    if (op === '=' || op === '!=') return r => same(r) === (op === '=');
    const test = {'<': v => v < 0, '>': v => v > 0, '<=': v => v <= 0, '>=': v => v >= 0}[op];
    if (c.type === 'time') return r => c.text(r) !== '' && test(c.text(r).localeCompare(text));
    return r => c.num(r) != null && test(c.num(r) - want);
  }
  const shown = () => D.columns.filter(c => c.shown);
  function search() {
    let tests = [], wrong = '';
    try { tests = (filter.value.match(/(?:"(?:[^"\\]|\\.)*"?|[^\s"])+/g) || []).map(condition); } catch (e) { wrong = e.message; }
    filter.classList.toggle('wrong', wrong !== '');
    rows = range(n).filter(r => tests.every(t => t(r)));
    const c = sorted.column;
    if (c) {
      // Numbers come before NaN, texts, and nothing, in both directions.
      const {compare} = new Intl.Collator('en', {numeric: true}), rank = [], place = new Uint8Array(n), key = new Float64Array(n), sign = sorted.desc ? -1 : 1;
      if (c.d) range(c.d.length).sort((a, b) => compare(c.d[a], c.d[b])).forEach((d, i) => { rank[d] = i; });
      for (const r of rows) {
        const v = c.num(r);
        place[r] = v == null ? (c.text(r) ? 2 : 3) : Number.isNaN(v) ? 1 : 0;
        key[r] = [v, 0, c.d && rank[c.alike(r)], 0][place[r]];
      }
      rows.sort((a, b) => place[a] - place[b] || sign * (key[a] - key[b]) || a - b);
    }
    $('#matched').textContent = wrong || (rows.length === n ? many(n) : `${many(rows.length)} of ${many(n)}`) + ' jobs';
    selected = clamp(selected, -1, rows.length - 1);
    box.scrollTop = 0;
    headings();
  }
  const wide = c => c.width ||= clamp(Math.max(Math.min(c.title.length, 20) + 3, ...range(Math.min(n, 300)).map(i => c.text(Math.floor(i * n / Math.min(n, 300))).length)), 6, 44) * 7.6 + (c === fact('state') ? 40 : 24);
  function headings() {
    head.replaceChildren(...shown().map(c => {
      const on = sorted.column === c, th = el('th', {scope: 'col', class: c.right ? 'num' : '', 'aria-sort': on ? (sorted.desc ? 'descending' : 'ascending') : 'none'},
        el('button', {title: c.name, onclick: () => { sorted = {column: c, desc: on && !sorted.desc}; search(); }}, c.title + (on ? (sorted.desc ? ' ↓' : ' ↑') : '')));
      th.style.width = wide(c) + 'px';
      return th;
    }), el('th'));
    set($('table', box), {'aria-rowcount': rows.length}).style.minWidth = shown().reduce((sum, c) => sum + wide(c), 0) + 'px';
    view();
  }
  // view puts the rows that can be seen between two rows that are as high as all others.
  function view() {
    const first = all ? 0 : Math.max(0, Math.floor(box.scrollTop / high) - 10), last = all ? Math.min(rows.length, 300) : Math.min(rows.length, first + Math.ceil(box.clientHeight / high) + 24);
    const pad = count => { const tr = el('tr', {class: 'pad'}, el('td')); tr.firstChild.style.height = count * high + 'px'; return tr; };
    body.replaceChildren(pad(first), ...rows.slice(first, last).map((r, i) => el('tr', {'aria-rowindex': first + i + 1, 'aria-selected': first + i === selected, onclick: () => { selected = first + i; view(); detail(r); }},
      shown().map(c => el('td', {class: c.right ? 'num' : c.name === 'command' ? 'mono' : '', title: c.text(r)}, c === fact('state') ? [swatch(css(c.text(r))), words(c.text(r))] : c.text(r))), el('td'))), pad(all ? 0 : rows.length - last));
    box.classList.toggle('short', all || rows.length < 18);
  }
  box.addEventListener('scroll', () => requestAnimationFrame(view));
  box.addEventListener('keydown', e => {
    const to = {ArrowDown: selected + 1, ArrowUp: selected - 1, PageDown: selected + 20, PageUp: selected - 20, Home: 0, End: rows.length - 1}[e.key];
    if (e.target !== box || !rows.length) return;
    if (e.key === 'Enter' && selected >= 0) detail(rows[selected]);
    if (to === undefined) return;
    e.preventDefault();
    selected = clamp(to, 0, rows.length - 1);
    if ((selected + 2) * high > box.scrollTop + box.clientHeight) box.scrollTop = (selected + 3) * high - box.clientHeight;
    if (selected * high < box.scrollTop) box.scrollTop = selected * high;
    view();
  });
  let typing;
  filter.addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(search, 120); });
  function find(text) { filter.value = text; search(); $('#jobs').scrollIntoView(); box.focus({preventScroll: true}); }
  $('#copy').addEventListener('click', async () => {
    const cells = [shown().map(c => c.name), ...rows.map(r => shown().map(c => c.d ? c.d[c.alike(r)] : c.n[r] ?? ''))];
    let said = many(rows.length) + ' rows copied';
    try { await navigator.clipboard.writeText(cells.map(l => l.join('\t')).join('\n')); } catch { said = 'the browser does not allow it'; }
    $('#matched').textContent = said;
  });
  put($('#pick div'), D.columns.map(c => { const check = set(el('input', {type: 'checkbox', onchange: e => { c.shown = e.target.checked; headings(); }}), c.shown ? {checked: ''} : {}); return el('label', null, check, ' ' + c.title); }));

  // One job, with all of its attempts.
  const firstOf = new Map();
  A.job.forEach((job, i) => { if (!firstOf.has(job)) firstOf.set(job, i); });
  function detail(r) {
    const dialog = $('#job'), job = fact('job').num(r), list = [];
    for (let i = firstOf.get(job) ?? A.job.length; A.job[i] === job; i++) list.push(i);
    const rest = D.columns.filter(c => !['job', 'name', 'command'].includes(c.name) && c.text(r) !== '');
    dialog.replaceChildren(el('form', {method: 'dialog'}, el('button', {autofocus: ''}, 'Close')), el('h2', {id: 'job-title'}, `Job ${job}`, fact('name').text(r) === fact('command').text(r) ? '' : ' – ' + fact('name').text(r)),
      el('pre', null, fact('command').text(r)), el('dl', null, rest.flatMap(c => [el('dt', null, c.title), el('dd', null, c.text(r))])),
      list.length ? el('div', {class: 'scroll'}, el('table', null, el('thead', null, el('tr', null, ['Attempt', 'Ended as', 'Host', 'Slot', 'Started', 'Time', 'Why'].map(t => el('th', null, t)))), el('tbody', null, list.map(i => el('tr', null,
        [`${job}.${A.num[i]}`, words(kinds[A.state[i]]), A.hosts[A.host[i]], A.slot[i] || '', clock(D.start + A.at[i]), A.took[i] < 0 ? '' : duration(A.took[i] / 1000), A.whys[A.why[i]]].map(t => el('td', null, t))))))) : null,
      el('p', {class: 'dim hint'}, 'Its output: ', el('span', {class: 'mono'}, `dcs-tui logs ${D.run} ${job}`)));
    if (!dialog.open) dialog.showModal();
  }
  document.addEventListener('click', e => {
    const a = e.target.closest('a[href="#jobs"]'), d = a && a.dataset;
    if (!d || !d.job && !d.column) return;
    e.preventDefault();
    if (d.job) return detail(rowOf.get(+d.job));
    find(`${fact(d.column).name}=${quote(d.value)}` + ('more' in d ? ` ${fact('last_line').name}=${quote(d.more)}` : ''));
  });

  // The slots, hosts in the order of their names.
  const byName = range(A.hosts.length).sort((a, b) => A.hosts[a].localeCompare(A.hosts[b], 'en', {numeric: true}));
  const end = i => A.at[i] + (A.took[i] < 0 ? Math.max(0, D.at - D.start - A.at[i]) : A.took[i]);
  const total = range(A.job.length).reduce((most, i) => Math.max(most, end(i)), 1), lanes = [], laneOf = new Map();
  const slotKey = i => A.host[i] * 65536 + A.slot[i];
  for (const i of range(A.job.length)) if (!laneOf.has(slotKey(i))) { laneOf.set(slotKey(i), {host: A.host[i], slot: A.slot[i], list: []}); lanes.push(laneOf.get(slotKey(i))); }
  for (const i of range(A.job.length).sort((a, b) => A.at[a] - A.at[b])) laneOf.get(slotKey(i)).list.push(i);
  const rankOf = []; byName.forEach((h, i) => { rankOf[h] = i; });
  lanes.sort((a, b) => rankOf[a.host] - rankOf[b.host] || a.slot - b.slot);
  const area = $('#lanes'), canvas = $('canvas', area), laneHigh = lanes.length > 40 ? 10 : 18, ruler = 22;
  const gutter = Math.min(160, 44 + 7 * Math.max(6, ...A.hosts.map(h => h.length)));
  let span = [0, total], drag = null;
  const toX = (t, W) => gutter + (t - span[0]) / (span[1] - span[0]) * (W - gutter), toTime = (x, W) => span[0] + (x - gutter) / (W - gutter) * (span[1] - span[0]);
  function paint() {
    const W = area.clientWidth, H = all ? lanes.length * laneHigh + ruler : Math.min(460, lanes.length * laneHigh + ruler), ratio = all ? 2 : devicePixelRatio || 1, g = canvas.getContext('2d');
    canvas.width = W * ratio; canvas.height = H * ratio; canvas.style.height = H + 'px';
    $('div', area).style.height = lanes.length * laneHigh + ruler - H + 'px';
    const color = name => { tip.style.borderColor = css(name); return getComputedStyle(tip).borderTopColor; }, colors = kinds.map(color), ink = color('dim'), line = color('line');
    g.scale(ratio, ratio);
    g.font = '11px system-ui, "DejaVu Sans", sans-serif'; g.textBaseline = 'middle';
    const marks = timeSteps(span[0] / 1000, span[1] / 1000, Math.max(2, Math.floor((W - gutter) / 90))).filter(t => toX(t * 1000, W) >= gutter);
    g.fillStyle = line;
    for (const t of marks) g.fillRect(Math.round(toX(t * 1000, W)), ruler - 4, 1, H);
    const from = all ? 0 : Math.floor(area.scrollTop / laneHigh), y = i => ruler + i * laneHigh - (all ? 0 : area.scrollTop);
    for (let i = from; i < lanes.length && y(i) < H; i++) {
      const lane = lanes[i], top = i === 0 || lanes[i - 1].host !== lane.host;
      if (top) { g.fillStyle = line; g.fillRect(0, y(i), W, 1); }
      g.fillStyle = ink;
      if (top || i === from) g.fillText(fit(g, A.hosts[lane.host], gutter - 36), 0, y(i) + laneHigh / 2 + 1);
      if (laneHigh > 12) { g.textAlign = 'right'; g.fillText(lane.slot || '?', gutter - 8, y(i) + laneHigh / 2 + 1); g.textAlign = 'left'; }
      // What did not succeed is drawn last, higher, and never narrower than two pixels.
      for (const good of [true, false]) {
        let drawn = -1;
        for (const k of lane.list) {
          if ((A.state[k] === 0) !== good || end(k) < span[0] || A.at[k] > span[1]) continue;
          const x0 = Math.max(gutter, toX(A.at[k], W)), x1 = Math.min(W, toX(end(k), W)), least = good ? 0.7 : 2;
          if (good && x1 < drawn) continue;
          g.fillStyle = colors[A.state[k]];
          const thin = good ? 0.2 : 0.08, broad = Math.max(least, x1 - x0 - (x1 - x0 > 3 ? 1 : 0));
          g.fillRect(x0, y(i) + laneHigh * thin, broad, laneHigh * (1 - 2 * thin));
          drawn = Math.max(drawn, x0 + least);
        }
      }
    }
    g.clearRect(0, 0, W, ruler);
    g.textAlign = 'center';
    g.fillStyle = ink;
    for (const t of marks) g.fillText(brief(t), clamp(toX(t * 1000, W), gutter + 14, W - 18), ruler / 2);
    g.textAlign = 'left';
    if (drag && drag.to !== drag.from) { g.fillStyle = ink; g.globalAlpha = 0.2; g.fillRect(Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), H); g.globalAlpha = 1; }
  }
  function fit(g, text, room) { while (text.length > 1 && g.measureText(text).width > room) text = text.slice(0, -2) + '…'; return text; }
  function under(e) {
    const box = canvas.getBoundingClientRect(), x = e.clientX - box.left, lane = lanes[Math.floor((e.clientY - box.top - ruler + area.scrollTop) / laneHigh)];
    if (!lane || x < gutter || e.clientY - box.top < ruler) return;
    const t = toTime(x, box.width), near = (span[1] - span[0]) / (box.width - gutter) * 3, off = i => Math.max(A.at[i] - t, t - end(i), 0);
    return lane.list.reduce((best, i) => off(i) < near && (best === undefined || off(i) < off(best)) ? i : best, undefined);
  }
  function zoom(factor, at = (span[0] + span[1]) / 2) {
    const wide = factor ? clamp((span[1] - span[0]) / factor, Math.min(50, total), total) : total, low = clamp(at - (at - span[0]) * wide / (span[1] - span[0]), 0, total - wide);
    span = [low, low + wide];
    paint();
  }
  set(area, {
    onscroll: () => requestAnimationFrame(paint),
    onpointerdown: e => { const x = e.clientX - canvas.getBoundingClientRect().left; if (e.target === canvas && x >= gutter) drag = {from: x, to: x}; },
    onpointermove: e => {
      if (drag) { drag.to = clamp(e.clientX - canvas.getBoundingClientRect().left, gutter, canvas.clientWidth); paint(); tell(); return; }
      const i = under(e);
      tell(e, i === undefined ? '' : `Job ${A.job[i]}${A.num[i] > 1 ? `, attempt ${A.num[i]}` : ''}: ${fact('name').text(rowOf.get(A.job[i])).slice(0, 120)}\n${words(kinds[A.state[i]])}${A.whys[A.why[i]] ? ' – ' + A.whys[A.why[i]] : ''}\n${A.hosts[A.host[i]]}, slot ${A.slot[i] || 'not known'}\nfrom ${duration(A.at[i] / 1000)}, ${A.took[i] < 0 ? 'not over' : 'for ' + duration(A.took[i] / 1000)}`);
    },
    onpointerleave: () => { tell(); },
    onkeydown: e => {
      const step = {ArrowLeft: -0.15, ArrowRight: 0.15}[e.key], factor = {'+': 2, '=': 2, '-': 0.5, 0: 0}[e.key];
      if (step) { const by = clamp((span[1] - span[0]) * step, -span[0], total - span[1]); span = [span[0] + by, span[1] + by]; paint(); } else if (factor !== undefined) zoom(factor); else return;
      e.preventDefault();
    },
    onwheel: e => { if (e.ctrlKey) { e.preventDefault(); zoom(e.deltaY < 0 ? 1.4 : 1 / 1.4, toTime(e.clientX - canvas.getBoundingClientRect().left, canvas.clientWidth)); } },
  });
  addEventListener('pointerup', e => {
    if (!drag) return;
    const {from, to} = drag;
    drag = null;
    if (Math.abs(to - from) > 5) { const W = canvas.clientWidth; span = [toTime(Math.min(from, to), W), toTime(Math.max(from, to), W)]; paint(); } else { const i = under(e); paint(); if (i !== undefined) detail(rowOf.get(A.job[i])); }
  });
  for (const b of document.querySelectorAll('[data-zoom]')) b.addEventListener('click', () => zoom(+b.dataset.zoom));
  put($('#kinds'), kinds.map((k, i) => A.state.includes(i) ? el('li', null, swatch(css(k)), words(k)) : null));

  // Load: slots in use and cores used by the attempts, as means over equal parts of the time.
  const parts = 240;
  function load(list) {
    const slots = new Float64Array(parts), cores = new Float64Array(parts), each = total / parts;
    for (const i of list) {
      const from = A.at[i], to = end(i), rate = A.took[i] > 0 ? A.cpu[i] / A.took[i] : 0;
      for (let p = Math.floor(from / each); p < parts && p * each < to; p++) {
        const share = (Math.min(to, (p + 1) * each) - Math.max(from, p * each)) / each;
        slots[p] += share; cores[p] += share * rate;
      }
    }
    const points = a => range(parts).map(p => [(p + 0.5) * each / 1000, a[p]]);
    return {slots: points(slots), cores: points(cores), mean: slots.reduce((a, b) => a + b, 0) / parts};
  }
  const axis = {time: true, fx: brief, x: [0, total / 1000], zero: true, fy: v => digits(+v.toPrecision(3))};
  const busy = l => [{name: 'slots in use', color: series[0], kind: 'area', points: l.slots}, {name: 'cores used by jobs', color: series[1], kind: 'line', points: l.cores}];
  const attempts = range(A.job.length), together = load(attempts), perHost = byName.map(() => []);
  for (const i of attempts) perHost[rankOf[A.host[i]]].push(i);
  const over = state => { const ends = attempts.filter(i => A.took[i] >= 0 && (A.state[i] === 0) === state).map(end).sort((a, b) => a - b); let k = 0; return range(parts + 1).map(p => { while (k < ends.length && ends[k] <= p * total / parts) k++; return [p * total / parts / 1000, k]; }); };
  const done = over(true), bad = over(false);
  if (A.job.length) {
    const [one, two] = [el('figure'), el('figure')];
    $('#progress').append(one, two);
    draws(() => { plot(one, {...axis, title: 'All hosts', series: busy(together)}); plot(two, {...axis, title: 'Attempts over', fy: whole, series: [{name: 'succeeded', color: css('succeeded'), kind: 'area', points: done}, {name: 'other', color: css('failed'), kind: 'line', points: bad}]}); });
  }
  const few = 12, figures = byName.map(() => el('figure'));
  function hostCharts(count) {
    $('#load').replaceChildren(...figures.slice(0, count));
    for (let i = 0; i < Math.min(count, byName.length); i++) {
      const l = perHost[i].load ||= load(perHost[i]), slots = new Set(perHost[i].map(k => A.slot[k])).size;
      plot(figures[i], {...axis, height: 110, left: 30, atLeast: slots, title: A.hosts[byName[i]], note: `${slots} slot${slots === 1 ? '' : 's'}, ${Math.round(100 * l.mean / slots)} % in use`, series: busy(l)});
    }
  }
  let hostCount = few;
  const more = $('#more-hosts');
  more.hidden = byName.length <= few;
  more.textContent = `Show all ${byName.length} hosts`;
  more.addEventListener('click', () => { hostCount = byName.length; more.hidden = true; hostCharts(hostCount); });
  draws(() => hostCharts(hostCount));

  // Distributions over jobs, on a logarithmic scale where the values need one.
  function histogram(figure, title, values, format) {
    values = values.filter(v => v > 0 && Number.isFinite(v)).sort((a, b) => a - b);
    if (values.length < 2 || values[0] === values.at(-1)) return figure.remove();
    const low = values[0], high = values.at(-1), log = high / low > 50, bins = 30, edge = i => log ? low * (high / low) ** (i / bins) : low + (high - low) * i / bins;
    let k = 0;
    const points = range(bins).map(b => { const from = k; while (k < values.length && (b === bins - 1 || values[k] < edge(b + 1))) k++; return [edge(b), k - from]; });
    const q = p => format(values[Math.min(values.length - 1, Math.floor(p * values.length))]);
    draws(() => plot(figure, {title, note: `median ${q(0.5)}, 95 % below ${q(0.95)}`, height: 130, left: 40, log, x: [low, high], zero: true, fx: format, until: x => edge(points.findIndex(p => p[0] === x) + 1), fy: whole, series: [{name: 'jobs', color: series[0], kind: 'bars', points}], xs: [low, edge(bins / 2), high]}));
  }
  const values = name => fact(name) ? range(n).map(r => fact(name).num(r)) : [], [time, cpu, memory] = ['elapsed_seconds', 'cpu_seconds', 'max_rss_bytes'].map(values);
  for (const [title, list, format] of [['Run time of jobs', time, duration], ['Peak memory of jobs', memory.filter(v => v > floor), size], ['CPU use of jobs', time.map((t, r) => t > 0.1 ? cpu[r] / t : 0), v => digits(+v.toPrecision(2)) + ' cores']]) {
    const f = el('figure');
    $('#histograms').append(f);
    histogram(f, title, list, format);
  }
  $('#spread').hidden = !$('#histograms').children.length;
  $('nav [href="#spread"]').hidden = $('#spread').hidden;
  grid(D, {fact, draws, find, quote});

  search();
  draws(paint);
  const redraw = () => { for (const f of redraws) f(); };
  let width = innerWidth, later;
  addEventListener('resize', () => { clearTimeout(later); later = setTimeout(() => { if (width !== innerWidth) { width = innerWidth; redraw(); } view(); }, 100); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);
  $('#theme').addEventListener('click', () => {
    const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    paint();
  });
  // On paper: light, all slots, and the first rows of the table.
  let theme;
  addEventListener('beforeprint', () => { theme = document.documentElement.dataset.theme; document.documentElement.dataset.theme = 'light'; all = true; paint(); view(); if (rows.length > 300) $('#matched').textContent = `the first 300 of ${many(rows.length)} jobs`; });
  addEventListener('afterprint', () => { if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme; all = false; paint(); search(); });
}

// grid draws a metric over the parameters of a grid, of jobs that succeeded.
function grid(D, {fact, draws, find, quote}) {
  const state = fact('state'), solved = range(D.rows).filter(r => state.text(r) === 'succeeded'), repeats = ['seed', 'rep', 'repeat', 'repetition', 'trial', 'fold', 'run', 'instance'];
  const several = D.columns.filter(c => c.role === 'param' && new Set(range(D.rows).map(r => c.text(r)).filter(t => t)).size > 1), most = 64;
  const params = [...several.filter(c => !repeats.includes(c.name.toLowerCase())), ...several.filter(c => repeats.includes(c.name.toLowerCase()))];
  const metrics = [...D.columns.filter(c => c.role === 'metric'), ...['elapsed_seconds', 'cpu_seconds', 'max_rss_bytes'].map(fact)].filter(c => c && solved.some(r => c.num(r) != null));
  if (!params.length || !metrics.length) return;
  $('#grid').hidden = $('nav [href="#grid"]').hidden = false;
  const measures = {
    mean: v => v.reduce((a, b) => a + b, 0) / v.length, median: v => { v = [...v].sort((a, b) => a - b); return (v[v.length >> 1] + v[(v.length - 1) >> 1]) / 2; },
    min: v => v.reduce((a, b) => Math.min(a, b)), max: v => v.reduce((a, b) => Math.max(a, b)), count: v => v.length,
  };
  const deviation = v => { const m = measures.mean(v); return v.length > 1 ? Math.sqrt(v.reduce((a, b) => a + (b - m) ** 2, 0) / (v.length - 1)) : 0; };
  const choose = (label, names, at) => { const s = el('select', {onchange: () => draw()}, names.map((t, i) => el('option', {value: i}, t))); s.value = at; $('#axes').append(el('label', null, label, s)); return () => +s.value; };
  const names = params.map(c => c.title), across = choose('Across', names, params.length > 1 ? 1 : 0), down = params.length > 1 ? choose('Down, and one line each', names, 0) : () => -1;
  const metric = choose('Shown', metrics.map(c => c.title), 0), measure = choose('over the rest', Object.keys(measures), 0);
  // The texts of a parameter, numbers by size if all are numbers.
  const axisOf = c => {
    const first = new Map(); // text to row
    for (const r of range(D.rows)) if (c.text(r) && !first.has(c.text(r))) first.set(c.text(r), r);
    const texts = [...first.keys()], numbers = texts.every(t => Number.isFinite(c.num(first.get(t))));
    if (numbers) texts.sort((a, b) => c.num(first.get(a)) - c.num(first.get(b)));
    return {c, texts: texts.slice(0, most), more: Math.max(0, texts.length - most), numbers, value: t => c.num(first.get(t))};
  };
  function draw() {
    const x = axisOf(params[across()]), m = metrics[metric()], how = Object.keys(measures)[measure()], compute = measures[how];
    const y = down() < 0 || down() === across() ? {c: null, texts: [m.title], more: 0} : axisOf(params[down()]), cells = new Map();
    for (const r of solved) {
      const v = m.num(r), key = JSON.stringify([y.c ? y.c.text(r) : m.title, x.c.text(r)]);
      if (Number.isFinite(v)) (cells.get(key) || cells.set(key, []).get(key)).push(v);
    }
    const at = (a, b) => cells.get(JSON.stringify([a, b])), title = `${how} of ${m.title}`, fy = how === 'count' ? digits : v => show(m, v);
    heat($('#heat'), {x, y, at, compute, title, format: fy, find, quote});
    const xs = x.numbers ? x.texts.map(x.value) : range(x.texts.length), spread = how === 'mean' ? deviation : () => 0;
    const lines = y.texts.slice(0, series.length).map((t, i) => ({name: y.c ? t : how, color: series[i], kind: 'dots', points: x.texts.flatMap((u, k) => { const v = at(t, u); return v ? [[xs[k], compute(v), spread(v)]] : []; })})).filter(s => s.points.length);
    const log = x.numbers && xs[0] > 0 && xs.at(-1) / xs[0] >= 50;
    if (lines.length) plot($('#lines'), {title: `${title} over ${x.c.title}` + (y.c ? `, a line for each ${y.c.title}` + (y.texts.length > series.length ? ` (the first ${series.length})` : '') : ''), series: lines, height: 300, left: 60, log, xs, fx: digits, fy, labels: x.numbers ? null : x.texts});
    else $('#lines').replaceChildren();
  }
  draws(draw);
}

const ramp = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]]; // viridis
function shade(t) {
  const i = Math.min(ramp.length - 2, Math.floor(t * (ramp.length - 1))), f = t * (ramp.length - 1) - i;
  return ramp[i].map((v, k) => Math.round(v + (ramp[i + 1][k] - v) * f));
}
function heat(figure, {x, y, at, compute, title, format, find, quote}) {
  const W = Math.max(260, figure.clientWidth), left = y.c ? clamp(9 + 6.6 * Math.max(...y.texts.map(t => t.length)), 40, 120) : 8, right = 6, wide = (W - left - right) / x.texts.length;
  const high = clamp(wide * 0.7, 14, clamp(280 / y.texts.length, 14, 64)), H = high * y.texts.length + 26, g = svg('svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': title});
  const values = y.texts.map(t => x.texts.map(u => { const v = at(t, u); return v && compute(v); })), known = values.flat().filter(v => v !== undefined), low = Math.min(...known), top = Math.max(...known);
  const cut = (t, room) => t.length * 6.4 > room ? t.slice(0, Math.max(1, Math.floor(room / 6.4) - 1)) + '…' : t;
  values.forEach((row, i) => {
    if (y.c) g.append(svg('text', {x: left - 6, y: i * high + high / 2 + 4, 'text-anchor': 'end'}, cut(y.texts[i], left - 8)));
    row.forEach((v, k) => {
      const rgb = v === undefined ? null : shade(top > low ? (v - low) / (top - low) : 0.5), label = v === undefined ? '' : format(+v.toPrecision(4)), where = [y.c && [y.c, y.texts[i]], [x.c, x.texts[k]]].filter(p => p);
      const rect = svg('rect', {class: 'cell', x: left + k * wide + 0.5, y: i * high + 0.5, width: Math.max(1, wide - 1), height: high - 1, rx: 2, fill: rgb ? `rgb(${rgb})` : css('queued'), onclick: () => find(where.map(([c, t]) => c.name + '=' + quote(t)).join(' '))});
      g.append(tells(rect, () => where.map(([c, t]) => `${c.title} = ${t}`).join('\n') + '\n' + (rgb ? `${title}: ${label}\n${at(y.texts[i], x.texts[k]).length} jobs` : 'no job that succeeded has a number')));
      if (rgb && label.length * 6.6 < wide - 4 && high > 13) { const t = svg('text', {x: left + (k + 0.5) * wide, y: i * high + high / 2 + 4, 'text-anchor': 'middle', 'pointer-events': 'none'}, label); t.style.fill = rgb[0] * 0.3 + rgb[1] * 0.6 + rgb[2] * 0.1 > 130 ? '#111' : '#fff'; g.append(t); }
    });
  });
  let free = -Infinity;
  x.texts.forEach((t, k) => { const label = cut(t, Math.max(wide, 60)), half = label.length * 3.3, mid = left + (k + 0.5) * wide; if (mid - half < free) return; free = mid + half + 6; g.append(svg('text', {x: mid, y: H - 10, 'text-anchor': 'middle'}, label)); });
  const cutOff = x.more || y.more ? `, the first ${x.texts.length} × ${y.texts.length}` : '';
  figure.replaceChildren(caption(title + (y.c ? `: ${y.c.title} down, ${x.c.title} across` : `: ${x.c.title} across`) + cutOff, known.length ? `${format(low)} to ${format(top)}` : '', []), g);
}

unpack().then(start).catch(e => {
  const p = $('#broken');
  p.hidden = false;
  p.textContent = 'The charts and the table could not be shown: ' + e.message + '. A current Firefox, Chrome, or Safari is needed.';
  console.error(e);
});
