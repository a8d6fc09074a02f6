const kinds = ['succeeded', 'failed', 'timed_out', 'canceled', 'lost', 'superseded', 'running']; // of attempts
const words = s => s.replaceAll('_', ' ');
const titles = {elapsed_seconds: 'time', cpu_seconds: 'CPU time', max_rss_bytes: 'memory', last_line: 'last line of stderr'};
const aliases = {time: 'elapsed_seconds', cpu: 'cpu_seconds', mem: 'max_rss_bytes', id: 'job'};
const byText = new Intl.Collator('en', {numeric: true}).compare;
const redraws = [], draws = f => { redraws.push(f); f(); };
const printedRows = 300;
let printing = false;

async function unpack() {
  const text = atob(JSON.parse($('#data').textContent).replace(/-/g, '+').replace(/_/g, '/'));
  const packed = Uint8Array.from(text, c => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}

// prepare gives each column text(row), num(row), and alike(row), a number that is the same for the same text.
function prepare(D) {
  const special = {nan: NaN, inf: Infinity, '-inf': -Infinity};
  for (const c of D.columns) {
    if (c.n) c.n = c.n.map(v => typeof v === 'string' ? special[v] : v);
    c.alike = c.i ? r => c.i[r] : r => r;
    c.num = !c.n ? () => null : c.d ? r => c.n[c.alike(r)] : r => c.n[r];
    c.raw = c.d ? r => c.d[c.alike(r)] : r => c.n[r] ?? '';
    c.text = c.d ? c.raw : r => c.n[r] == null ? '' : show(c, c.n[r]);
    if (c.type === 'time') c.text = r => c.raw(r) && clock(Date.parse(c.raw(r)));
    c.right = !c.d || c.n && c.n.some(v => v != null) && c.n.every((v, i) => v != null || c.d[i] === '');
    c.title = titles[c.name] || c.name;
  }
  const exact = name => D.columns.find(c => c.name === name);
  D.column = name => exact(name) || exact(aliases[name.toLowerCase()]) || D.columns.find(c => c.name.toLowerCase() === name.toLowerCase());
  D.fact = name => exact('dcs.' + name) || exact(name);
  D.rowOf = new Map(range(D.rows).map(r => [D.fact('job').num(r), r]));
}

// The filter: words, which may be anywhere in a row, and terms such as time>90s. All must hold.
const quote = s => /^[\w.-]+$/.test(s) ? s : '"' + s.replace(/["\\]/g, '\\$&') + '"';
const plain = s => s.replace(/"((?:[^"\\]|\\.)*)"?/g, (_, q) => q.replace(/\\(.)/g, '$1'));
const term = (c, text) => quote(c.name) + '=' + quote(text);
const seconds = {ms: 0.001, s: 1, m: 60, h: 3600, d: 86400}, powers = {k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40};
function numberIn(c, s) {
  const [, number, unit] = /^([-+]?(?:\d[\d.]*|\.\d+)(?:e[-+]?\d+)?)([a-z]*)$/i.exec(s) || [];
  return number * (unit ? (c.type === 'size' ? powers[unit[0].toLowerCase()] : seconds[unit]) : 1);
}
function condition(D, text) {
  const [, name, op, value] = /^("(?:[^"\\]|\\.)*"|[^<>=!~"]+)(>=|<=|!=|=|<|>|~)(.*)$/.exec(text) || [];
  if (!op) {
    const want = plain(text).toLowerCase(), has = D.columns.filter(c => c.d).map(c => [c, c.d.map(t => t.toLowerCase().includes(want))]);
    return r => has.some(([c, of]) => of[c.alike(r)]);
  }
  const c = D.column(plain(name));
  if (!c) throw new Error('there is no column ' + plain(name));
  const want = plain(value), low = want.toLowerCase(), number = numberIn(c, want);
  const same = r => c.num(r) != null && !Number.isNaN(number) ? c.num(r) === number : c.text(r) === want;
  const difference = c.type === 'time' ? r => c.text(r) ? c.text(r).localeCompare(want) : NaN : r => c.num(r) == null ? NaN : c.num(r) - number;
  return {
    '~': r => c.text(r).toLowerCase().includes(low), '=': same, '!=': r => !same(r),
    '<': r => difference(r) < 0, '>': r => difference(r) > 0, '<=': r => difference(r) <= 0, '>=': r => difference(r) >= 0,
  }[op];
}

// order sorts rows by a column: numbers before NaN, texts, and nothing, in both directions.
function order(rows, c, desc) {
  const rank = [], place = [], key = [], sign = desc ? -1 : 1;
  if (c.d) range(c.d.length).sort((a, b) => byText(c.d[a], c.d[b])).forEach((d, i) => { rank[d] = i; });
  for (const r of rows) {
    const v = c.num(r);
    place[r] = v == null ? (c.text(r) ? 2 : 3) : Number.isNaN(v) ? 1 : 0;
    key[r] = place[r] === 0 ? v : place[r] === 2 ? rank[c.alike(r)] : 0;
  }
  rows.sort((a, b) => place[a] - place[b] || sign * (key[a] - key[b] || 0) || a - b);
}

// jobTable shows the jobs, of which only the rows that can be seen are in the document. It returns find(filter).
function jobTable(D, detail) {
  const box = $('#table'), filter = $('#filter'), high = 28, state = D.fact('state'), matched = $('#matched');
  let rows = range(D.rows), by = null, desc = false, selected = -1, typing;
  const shown = () => D.columns.filter(c => c.shown);
  function search() {
    let tests = [], wrong = '';
    const terms = filter.value.match(/(?:"(?:[^"\\]|\\.)*"?|[^\s"])+/g) || [];
    try { tests = terms.map(t => condition(D, t)); } catch (e) { wrong = e.message; }
    filter.classList.toggle('wrong', wrong !== '');
    rows = range(D.rows).filter(r => tests.every(t => t(r)));
    if (by) order(rows, by, desc);
    matched.textContent = wrong || (rows.length === D.rows ? '' : many(rows.length) + ' of ') + many(D.rows) + (D.rows === 1 ? ' job' : ' jobs');
    selected = Math.min(selected, rows.length - 1);
    box.scrollTop = 0;
    headings();
  }
  const samples = range(Math.min(D.rows, 300)).map(i => Math.floor(i * D.rows / Math.min(D.rows, 300)));
  const letters = c => clamp(Math.max(Math.min(c.title.length, 20) + 3, ...samples.map(r => c.text(r).length)), 6, 44);
  const wide = c => c.width ||= letters(c) * 7.6 + (c === state ? 40 : 24);
  function headings() {
    $('thead tr', box).replaceChildren(...shown().map(c => {
      const way = c !== by ? 'none' : desc ? 'descending' : 'ascending', mark = {none: '', descending: ' ↓', ascending: ' ↑'}[way];
      const sort = () => { desc = c === by && !desc; by = c; search(); };
      const th = el('th', {scope: 'col', class: c.right ? 'num' : '', 'aria-sort': way}, el('button', {title: c.name, onclick: sort}, c.title + mark));
      th.style.width = wide(c) + 'px';
      return th;
    }), el('th'));
    set($('table', box), {'aria-rowcount': rows.length}).style.minWidth = shown().reduce((sum, c) => sum + wide(c), 0) + 'px';
    view();
  }
  function cell(c, r) {
    const text = c.text(r), kind = c.right ? 'num' : c.name === 'command' ? 'mono' : '';
    return el('td', {class: kind, title: text}, c === state ? [swatch(css(text)), words(text)] : text);
  }
  function row(at) {
    const click = () => { selected = at; view(); detail(rows[at]); };
    return el('tr', {'aria-rowindex': at + 1, 'aria-selected': at === selected, onclick: click}, shown().map(c => cell(c, rows[at])), el('td'));
  }
  // view puts the rows that can be seen between two rows that are as high as all others.
  function view() {
    const first = printing ? 0 : Math.max(0, Math.floor(box.scrollTop / high) - 10);
    const last = Math.min(rows.length, printing ? printedRows : first + Math.ceil(box.clientHeight / high) + 24);
    const pad = count => { const tr = el('tr', {class: 'pad'}, el('td')); tr.firstChild.style.height = count * high + 'px'; return tr; };
    $('tbody', box).replaceChildren(pad(first), ...range(last - first).map(i => row(first + i)), pad(printing ? 0 : rows.length - last));
    box.classList.toggle('short', printing || rows.length < 18);
    if (printing && last < rows.length) matched.textContent = `the first ${last} of ${many(rows.length)} jobs`;
  }
  function keys(e) {
    const to = {ArrowDown: selected + 1, ArrowUp: selected - 1, PageDown: selected + 20, PageUp: selected - 20, Home: 0, End: rows.length - 1}[e.key];
    if (e.target !== box || !rows.length) return;
    if (e.key === 'Enter' && selected >= 0) detail(rows[selected]);
    if (to === undefined) return;
    e.preventDefault();
    selected = clamp(to, 0, rows.length - 1);
    box.scrollTop = clamp(box.scrollTop, (selected + 3) * high - box.clientHeight, selected * high);
    view();
  }
  async function copy() {
    const cells = [shown().map(c => c.name), ...rows.map(r => shown().map(c => c.raw(r)))];
    const text = cells.map(l => l.join('\t')).join('\n');
    matched.textContent = await navigator.clipboard.writeText(text).then(() => many(rows.length) + ' rows copied', () => 'the browser does not allow it');
  }
  set(box, {onscroll: () => requestAnimationFrame(view), onkeydown: keys});
  filter.addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(search, 120); });
  $('#copy').addEventListener('click', copy);
  for (const c of D.columns) {
    const check = el('input', {type: 'checkbox', onchange: () => { c.shown = check.checked; headings(); }});
    check.checked = c.shown;
    $('#pick div').append(el('label', null, check, ' ' + c.title));
  }
  draws(search);
  return text => { filter.value = text; search(); $('#jobs').scrollIntoView(); box.focus({preventScroll: true}); };
}

// details returns a function that shows one job with all of its attempts.
function details(D) {
  const A = D.attempts, dialog = $('#job'), first = new Map(), table = (heads, lines) => el('table', null,
    el('thead', null, el('tr', null, heads.map(t => el('th', null, t)))), el('tbody', null, lines.map(l => el('tr', null, l.map(t => el('td', null, t))))));
  A.job.forEach((job, i) => { if (!first.has(job)) first.set(job, i); });
  return r => {
    const job = D.fact('job').num(r), name = D.fact('name').text(r), command = D.fact('command').text(r), lines = [];
    for (let i = first.get(job); A.job[i] === job; i++) {
      const took = A.took[i] < 0 ? '' : duration(A.took[i] / 1000);
      lines.push([`${job}.${A.num[i]}`, words(kinds[A.state[i]]), A.hosts[A.host[i]], A.slot[i] || '', clock(D.start + A.at[i]), took, A.whys[A.why[i]]]);
    }
    const rest = D.columns.filter(c => !['job', 'name', 'command'].includes(c.name) && c.text(r) !== '');
    dialog.replaceChildren();
    put(dialog, [el('form', {method: 'dialog'}, el('button', {autofocus: ''}, 'Close')),
      el('h2', {id: 'job-title'}, `Job ${job}`, name === command ? '' : ' – ' + name), el('pre', null, command),
      el('dl', null, rest.flatMap(c => [el('dt', null, c.title), el('dd', null, c.text(r))])),
      lines.length ? el('div', {class: 'scroll'}, table(['Attempt', 'Ended as', 'Host', 'Slot', 'Started', 'Time', 'Why'], lines)) : null,
      el('p', {class: 'dim hint'}, 'Its output: ', el('span', {class: 'mono'}, `dcs-tui logs ${D.run} ${job}`))]);
    if (!dialog.open) dialog.showModal();
  };
}

// timeline draws a lane for each slot and a bar for each attempt.
function timeline(D, detail) {
  const A = D.attempts, lanes = [], of = new Map(), area = $('#lanes'), canvas = $('canvas', area), ruler = 22;
  for (const i of range(A.job.length).sort((a, b) => A.at[a] - A.at[b])) {
    const key = A.host[i] + ' ' + A.slot[i];
    if (!of.has(key)) lanes.push(of.set(key, {host: A.host[i], slot: A.slot[i], list: []}).get(key));
    of.get(key).list.push(i);
  }
  lanes.sort((a, b) => D.rank[a.host] - D.rank[b.host] || a.slot - b.slot);
  const high = lanes.length > 40 ? 10 : 18, full = lanes.length * high + ruler, left = Math.min(160, 44 + 7 * Math.max(6, ...A.hosts.map(h => h.length)));
  let [low, top] = [0, D.total], drag = null;
  const xOf = (t, W) => left + (t - low) / (top - low) * (W - left), timeOf = (x, W) => low + (x - left) / (W - left) * (top - low);
  const color = name => { tip.style.borderColor = css(name); return getComputedStyle(tip).borderTopColor; };
  function fit(g, text, room) { while (text.length > 1 && g.measureText(text).width > room) text = text.slice(0, -2) + '…'; return text; }
  function paint() {
    const W = area.clientWidth, H = printing ? full : Math.min(460, full), ratio = printing ? Math.min(2, 16000 / H) : devicePixelRatio || 1;
    const g = canvas.getContext('2d'), bars = kinds.map(color), ink = color('dim'), rule = color('line'), scroll = printing ? 0 : area.scrollTop;
    const rect = (fill, x, y, w, h) => { g.fillStyle = fill; g.fillRect(x, y, w, h); };
    const label = (text, x, y, align) => { g.fillStyle = ink; g.textAlign = align; g.fillText(text, x, y); };
    Object.assign(canvas, {width: W * ratio, height: H * ratio});
    canvas.style.height = H + 'px';
    $('div', area).style.height = full - H + 'px';
    g.scale(ratio, ratio);
    Object.assign(g, {font: '11px system-ui, "DejaVu Sans", sans-serif', textBaseline: 'middle'});
    const marks = timeSteps(low / 1000, top / 1000, Math.max(2, Math.floor((W - left) / 90))).map(t => [brief(t), xOf(t * 1000, W)]).filter(m => m[1] >= left);
    for (const [, x] of marks) rect(rule, Math.round(x), ruler - 4, 1, H);
    for (let i = Math.floor(scroll / high); i < lanes.length && ruler + i * high - scroll < H; i++) {
      const lane = lanes[i], y = ruler + i * high - scroll, begins = i === 0 || lanes[i - 1].host !== lane.host, middle = y + high / 2 + 1;
      if (begins) rect(rule, 0, y, W, 1);
      if (begins || y <= ruler) label(fit(g, A.hosts[lane.host], left - 36), 0, middle, 'left');
      if (high > 12) label(lane.slot || '?', left - 8, middle, 'right');
      // What did not succeed is drawn last, higher, and never narrower than two pixels.
      for (const [good, least, inset] of [[true, 0.7, 0.2], [false, 2, 0.08]]) {
        let drawn = -1;
        for (const k of lane.list) {
          const x0 = Math.max(left, xOf(A.at[k], W)), x1 = Math.min(W, xOf(D.end(k), W)), gap = x1 - x0 > 3 ? 1 : 0;
          if ((A.state[k] === 0) !== good || D.end(k) < low || A.at[k] > top || good && x1 < drawn) continue;
          rect(bars[A.state[k]], x0, y + high * inset, Math.max(least, x1 - x0 - gap), high * (1 - 2 * inset));
          drawn = Math.max(drawn, x0 + least);
        }
      }
    }
    g.clearRect(0, 0, W, ruler);
    for (const [text, x] of marks) label(text, clamp(x, left + 14, W - 18), ruler / 2, 'center');
    if (drag) { g.globalAlpha = 0.2; rect(ink, Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), H); }
  }
  const inside = e => { const box = canvas.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top, box.width]; };
  function under(e) { // the attempt below the pointer, or almost
    const [x, y, W] = inside(e), lane = lanes[Math.floor((y - ruler + area.scrollTop) / high)];
    if (!lane || x < left || y < ruler) return undefined;
    const t = timeOf(x, W), off = i => Math.max(A.at[i] - t, t - D.end(i), 0), near = lane.list.filter(i => off(i) < (top - low) / (W - left) * 3);
    return near.length ? near.reduce((a, b) => off(b) < off(a) ? b : a) : undefined;
  }
  function said(i) {
    const name = D.fact('name').text(D.rowOf.get(A.job[i])).slice(0, 120), again = A.num[i] > 1 ? `, attempt ${A.num[i]}` : '', why = A.whys[A.why[i]];
    const span = `from ${duration(A.at[i] / 1000)}, ${A.took[i] < 0 ? 'not over' : 'for ' + duration(A.took[i] / 1000)}`;
    return [`Job ${A.job[i]}${again}: ${name}`, words(kinds[A.state[i]]) + (why && ' – ' + why), `${A.hosts[A.host[i]]}, slot ${A.slot[i] || 'not known'}`, span].join('\n');
  }
  function look(from, to) {
    const wide = clamp(to - from, Math.min(50, D.total), D.total);
    low = clamp(from, 0, D.total - wide);
    top = low + wide;
    paint();
  }
  const zoom = (factor, at = (low + top) / 2) => factor ? look(at - (at - low) / factor, at + (top - at) / factor) : look(0, D.total);
  set(area, {
    onscroll: () => requestAnimationFrame(paint),
    onpointerdown: e => { const [x] = inside(e); if (e.target === canvas && x >= left) drag = {from: x, to: x}; },
    onpointermove: e => {
      const i = under(e);
      if (!drag) return tell(e, i === undefined ? '' : said(i));
      drag.to = clamp(inside(e)[0], left, canvas.clientWidth);
      paint();
    },
    onpointerleave: () => tell(),
    onkeydown: e => {
      const step = {ArrowLeft: -0.15, ArrowRight: 0.15}[e.key] * (top - low), factor = {'+': 2, '=': 2, '-': 0.5, 0: 0}[e.key];
      if (step) look(low + step, top + step); else if (factor !== undefined) zoom(factor); else return;
      e.preventDefault();
    },
    onwheel: e => { if (e.ctrlKey) { e.preventDefault(); zoom(e.deltaY < 0 ? 1.4 : 1 / 1.4, timeOf(inside(e)[0], canvas.clientWidth)); } },
  });
  addEventListener('pointerup', e => {
    if (!drag) return;
    const [from, to] = [drag.from, drag.to].sort((a, b) => a - b), i = under(e), W = canvas.clientWidth;
    drag = null;
    if (to - from > 5) look(timeOf(from, W), timeOf(to, W)); else if (i !== undefined) detail(D.rowOf.get(A.job[i]));
  });
  for (const b of document.querySelectorAll('[data-zoom]')) b.addEventListener('click', () => zoom(+b.dataset.zoom));
  put($('#kinds'), kinds.map((k, i) => A.state.includes(i) ? el('li', null, swatch(css(k)), words(k)) : null));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);
  draws(paint);
}

// load draws slots in use and cores used by the attempts, as means over equal parts of the time.
function load(D) {
  const A = D.attempts, parts = 240, each = D.total / parts, attempts = range(A.job.length), few = 12;
  const axis = {time: true, fx: brief, x: [0, D.total / 1000], zero: true, fy: v => digits(+v.toPrecision(3))};
  function use(list) {
    const slots = Array(parts).fill(0), cores = Array(parts).fill(0);
    for (const i of list) {
      const rate = A.took[i] > 0 ? A.cpu[i] / A.took[i] : 0;
      for (let p = Math.floor(A.at[i] / each); p < parts && p * each < D.end(i); p++) {
        const share = (Math.min(D.end(i), (p + 1) * each) - Math.max(A.at[i], p * each)) / each;
        slots[p] += share;
        cores[p] += share * rate;
      }
    }
    const points = list => list.map((v, p) => [(p + 0.5) * each / 1000, v]), mean = slots.reduce((a, b) => a + b) / parts;
    return {mean, series: [{name: 'slots in use', color: colors[0], kind: 'area', points: points(slots)}, {name: 'cores used by jobs', color: colors[1], kind: 'line', points: points(cores)}]};
  }
  function over(good) { // how many attempts were over at a time
    const ends = attempts.filter(i => A.took[i] >= 0 && (A.state[i] === 0) === good).map(D.end).sort((a, b) => a - b);
    let k = 0;
    return range(parts + 1).map(p => { while (ends[k] <= p * each) k++; return [p * each / 1000, k]; });
  }
  $('#timeline').hidden = $('nav [href="#timeline"]').hidden = $('#hosts').hidden = $('nav [href="#hosts"]').hidden = !attempts.length;
  if (!attempts.length) return;
  const together = use(attempts), one = el('figure'), two = el('figure'), perHost = D.byName.map(() => []), figures = D.byName.map(() => el('figure'));
  const ends = [{name: 'succeeded', color: css('succeeded'), kind: 'area', points: over(true)}, {name: 'other', color: css('failed'), kind: 'line', points: over(false)}];
  $('#progress').append(one, two);
  draws(() => plot(one, {...axis, title: 'All hosts', series: together.series}));
  draws(() => plot(two, {...axis, title: 'Attempts over', fy: whole, series: ends}));
  for (const i of attempts) perHost[D.rank[A.host[i]]].push(i);
  function loads(i) { // of everybody's processes
    const points = (A.loads[D.byName[i]] || []).filter(p => p[0] <= D.total / 1000);
    return points.length ? [{name: 'load average', color: colors[3], kind: 'line', points}] : [];
  }
  function host(i) {
    const used = perHost[i].use ||= use(perHost[i]), slots = new Set(perHost[i].map(k => A.slot[k])).size;
    const note = `${slots} slot${slots === 1 ? '' : 's'}, ${Math.round(100 * used.mean / slots)} % in use`;
    plot(figures[i], {...axis, height: 110, left: 30, atLeast: slots, title: A.hosts[D.byName[i]], note, series: [...used.series, ...loads(i)]});
  }
  let count = Math.min(few, figures.length);
  const more = $('#more-hosts'), hosts = () => { $('#load').replaceChildren(...figures.slice(0, count)); range(count).forEach(host); };
  more.hidden = count === figures.length;
  more.textContent = `Show all ${figures.length} hosts`;
  more.addEventListener('click', () => { count = figures.length; more.hidden = true; hosts(); });
  draws(hosts);
}

// grid draws a metric over the parameters of a grid, of jobs that succeeded.
function grid(D, find) {
  const all = range(D.rows), crowd = 24, solved = all.filter(r => D.fact('state').text(r) === 'succeeded'), most = 64;
  const repeats = ['seed', 'rep', 'repeat', 'repetition', 'trial', 'fold', 'run', 'instance'], isRepeat = c => repeats.includes(c.name.toLowerCase());
  const params = D.columns.filter(c => c.role === 'param' && new Set(all.map(c.text).filter(t => t)).size > 1).sort((a, b) => isRepeat(a) - isRepeat(b));
  const metrics = [...D.columns.filter(c => c.role === 'metric'), ...['elapsed_seconds', 'cpu_seconds', 'max_rss_bytes'].map(D.fact)].filter(c => solved.some(r => c.num(r) != null));
  if (!params.length || !metrics.length) return;
  $('#grid').hidden = $('nav [href="#grid"]').hidden = false;
  const mean = v => v.reduce((a, b) => a + b) / v.length, middle = v => [v.length - 1 >> 1, v.length >> 1].map(i => [...v].sort((a, b) => a - b)[i]);
  const measures = {mean, median: v => mean(middle(v)), min: v => v.reduce((a, b) => Math.min(a, b)), max: v => v.reduce((a, b) => Math.max(a, b)), count: v => v.length};
  const basis = (n, of) => n < of ? `${many(n)} of ${many(of)} jobs` : `${many(n)} ${n === 1 ? 'job' : 'jobs'}`;
  const deviation = v => { const m = mean(v); return v.length > 1 ? Math.sqrt(v.reduce((a, b) => a + (b - m) ** 2, 0) / (v.length - 1)) : 0; };
  function choose(label, names, at) {
    const list = el('select', {onchange: () => draw()}, names.map((t, i) => el('option', {value: i}, t)));
    list.value = at;
    $('#axes').append(el('label', null, label, list));
    return () => +list.value;
  }
  const names = params.map(c => c.title), across = choose('Across', names, Math.min(1, names.length - 1));
  const down = names.length > 1 ? choose('Down, and one line each', names, 0) : across;
  const metric = choose('Shown', metrics.map(c => c.title), 0), measure = choose('over the rest', Object.keys(measures), 0);
  // axisOf returns the texts along an axis, numbers by size, which of them a row has, where a text lies, and a filter for it.
  function axisOf(c) {
    const value = new Map(all.filter(r => c.text(r)).map(r => [c.text(r), c.num(r)])), texts = [...value.keys()], numbers = texts.every(t => Number.isFinite(value.get(t)));
    if (!numbers) return {c, numbers, texts: texts.slice(0, most), more: Math.max(0, texts.length - most), of: c.text, at: t => texts.indexOf(t), filter: t => term(c, t)};
    texts.sort((a, b) => value.get(a) - value.get(b));
    if (texts.length <= crowd) return {c, numbers, texts, more: 0, of: c.text, at: t => value.get(t), filter: t => term(c, t)};
    // The values of a search are nearly all different: equal parts of their range stand for them.
    const low = value.get(texts[0]), high = value.get(texts.at(-1)), log = low > 0 && high / low >= 50, parts = 12;
    const edge = i => +(log ? low * (high / low) ** (i / parts) : low + (high - low) * i / parts).toPrecision(3), names = range(parts).map(i => `${digits(edge(i))} to ${digits(edge(i + 1))}`);
    const part = v => clamp(range(parts).findLastIndex(i => v >= edge(i)), 0, parts - 1), name = quote(c.name);
    return {c, numbers, texts: names, more: 0, of: r => c.num(r) == null ? '' : names[part(c.num(r))], at: t => (edge(names.indexOf(t)) + edge(names.indexOf(t) + 1)) / 2, label: t => t.replace(/ to.*/, ' …'),
      filter: t => { const i = names.indexOf(t); return (i ? `${name}>=${edge(i)} ` : '') + (i + 1 < parts ? `${name}<${edge(i + 1)}` : ''); }};
  }
  function draw() {
    const x = axisOf(params[across()]), m = metrics[metric()], how = Object.keys(measures)[measure()], one = down() === across();
    const compute = v => how !== 'count' && v.some(Number.isNaN) ? NaN : measures[how](v); // a job that diverged does not improve a mean
    const y = one ? {c: null, texts: [how], more: 0} : axisOf(params[down()]), cells = new Map(), jobs = new Map(), key = (a, b) => JSON.stringify([a, b]);
    const inside = r => x.of(r) && (one || y.of(r)), there = all.filter(inside), used = solved.filter(r => inside(r) && m.num(r) != null);
    for (const r of there) {
      const k = key(one ? how : y.of(r), x.of(r));
      jobs.set(k, (jobs.get(k) || 0) + 1);
    }
    for (const r of used) {
      const k = key(one ? how : y.of(r), x.of(r));
      (cells.get(k) || cells.set(k, []).get(k)).push(m.num(r));
    }
    const at = (a, b) => cells.get(key(a, b)), of = (a, b) => basis((at(a, b) || []).length, jobs.get(key(a, b)) || 0), note = used.length < there.length ? 'based on ' + basis(used.length, there.length) : '';
    const title = `${how} of ${m.title}`, format = how === 'count' ? digits : v => show(m, v), xs = x.texts.map(x.at);
    heat($('#heat'), {x, y, at, of, note, compute, title, format, choose: where => find(where.map(([axis, t]) => axis.filter(t)).join(' '))});
    const point = (name, u) => [x.at(u), compute(at(name, u)), how === 'mean' ? deviation(at(name, u)) : 0, of(name, u)];
    const lines = y.texts.slice(0, colors.length).map((name, i) => ({name, color: colors[i], kind: 'dots', points: x.texts.filter(u => at(name, u)).map(u => point(name, u)).filter(p => Number.isFinite(p[1]))}));
    const each = one ? '' : `, a line for each ${y.c.title}` + (y.texts.length > lines.length ? ` (the first ${lines.length})` : ''), log = x.numbers && xs[0] > 0 && xs.at(-1) / xs[0] >= 50;
    if (!cells.size) return $('#lines').replaceChildren();
    plot($('#lines'), {note, title: `${title} over ${x.c.title}${each}`, series: lines.filter(s => s.points.length), height: 300, left: 60, log, xs, x: [xs[0], xs.at(-1)], fy: format, labels: x.numbers ? null : x.texts});
  }
  draws(draw);
}

function spread(D) {
  const values = name => range(D.rows).map(D.fact(name).num), time = values('elapsed_seconds'), cpu = values('cpu_seconds'), memory = values('max_rss_bytes');
  const cores = time.map((t, r) => t > 0.1 ? cpu[r] / t : 0);
  for (const [title, list, format] of [['Run time of jobs', time, duration], ['Peak memory of jobs', memory.filter(v => v > floor), size], ['CPU use of jobs', cores, v => digits(+v.toPrecision(2)) + ' cores']]) {
    const figure = el('figure'), draw = histogram(figure, title, list, format);
    if (!draw) continue;
    $('#histograms').append(figure);
    draws(draw);
  }
  $('#spread').hidden = $('nav [href="#spread"]').hidden = !$('#histograms').children.length;
}

function start(D) {
  const A = D.attempts, root = document.documentElement, redraw = () => redraws.forEach(f => f());
  for (const k in A) A[k] ||= []; // nothing has started
  prepare(D);
  D.end = i => A.at[i] + (A.took[i] < 0 ? Math.max(0, D.at - D.start - A.at[i]) : A.took[i]);
  D.total = A.job.reduce((most, _, i) => Math.max(most, D.end(i)), 1);
  D.byName = range(A.hosts.length).sort((a, b) => byText(A.hosts[a], A.hosts[b]));
  D.rank = range(A.hosts.length).map(h => D.byName.indexOf(h));
  const detail = details(D), find = jobTable(D, detail);
  load(D);
  grid(D, find);
  timeline(D, detail);
  spread(D);
  document.addEventListener('click', e => {
    const d = e.target.closest('a[href="#jobs"]')?.dataset || {};
    if (!d.job && !d.column) return;
    e.preventDefault();
    if (d.job) detail(D.rowOf.get(+d.job)); else find(term(D.fact(d.column), d.value) + ('more' in d ? ' ' + term(D.fact('last_line'), d.more) : ''));
  });
  let width = innerWidth, later;
  addEventListener('resize', () => { clearTimeout(later); later = setTimeout(() => { if (width !== innerWidth) redraw(); width = innerWidth; }, 100); });
  // On paper: light, all slots, and the first rows of the table.
  addEventListener('beforeprint', () => { root.style.colorScheme = 'light'; printing = true; redraw(); });
  addEventListener('afterprint', () => { root.style.colorScheme = ''; printing = false; redraw(); });
}

unpack().then(start).catch(e => {
  $('#broken').hidden = false;
  $('#broken').textContent = 'The charts and the table could not be shown: ' + e.message + '. A current Firefox, Chrome, or Safari is needed.';
  console.error(e);
});
