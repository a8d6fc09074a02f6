// Draws captured terminals (NAME-WxH.ans) as pictures, dark and light:
// node render.js DIRECTORY-OF-CAPTURES DIRECTORY-OF-PICTURES
const fs = require('fs');
const path = require('path');
const { chromium } = require('playwright-core');

const xterm = path.dirname(require.resolve('@xterm/xterm/package.json'));
const themes = {
  dark: { background: '#16181d', foreground: '#d6d9df', cursor: '#16181d', black: '#16181d', red: '#f0616d', green: '#7fc06e', yellow: '#e0b35a', blue: '#6aa7f0',
    magenta: '#c48be0', cyan: '#5cc0c7', white: '#d6d9df', brightBlack: '#7b828f', brightRed: '#f0616d', brightGreen: '#7fc06e', brightYellow: '#e0b35a',
    brightBlue: '#6aa7f0', brightMagenta: '#c48be0', brightCyan: '#5cc0c7', brightWhite: '#ffffff' },
  light: { background: '#fdfdfb', foreground: '#2a2d33', cursor: '#fdfdfb', black: '#2a2d33', red: '#c42b3a', green: '#3b7f2b', yellow: '#94660a', blue: '#2660b0',
    magenta: '#8a3fae', cyan: '#0d7680', white: '#e6e6e3', brightBlack: '#70757f', brightRed: '#c42b3a', brightGreen: '#3b7f2b', brightYellow: '#94660a',
    brightBlue: '#2660b0', brightMagenta: '#8a3fae', brightCyan: '#0d7680', brightWhite: '#fdfdfb' },
};

(async () => {
  const [from, to] = process.argv.slice(2);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox'] });
  const css = fs.readFileSync(path.join(xterm, 'css/xterm.css'), 'utf8');
  const js = fs.readFileSync(path.join(xterm, 'lib/xterm.js'), 'utf8');
  for (const file of fs.readdirSync(from).filter((f) => f.endsWith('.ans'))) {
    const [, name, cols, rows] = file.match(/^(.*)-(\d+)x(\d+)\.ans$/);
    const text = fs.readFileSync(path.join(from, file), 'utf8').replace(/\n$/, '').replace(/\n/g, '\r\n');
    for (const [theme, colours] of Object.entries(themes)) {
      if (name.startsWith('frame-') && theme !== 'dark') continue;
      const page = await browser.newPage({ viewport: { width: cols * 10 + 80, height: rows * 22 + 80 } });
      await page.setContent(`<style>${css} body{margin:0;background:${colours.background}} #box{display:inline-block;padding:10px;background:${colours.background}}
        .xterm-viewport{overflow:hidden!important}</style><div id=box><div id=t></div></div>`);
      await page.addScriptTag({ content: js });
      await page.evaluate(async ([text, cols, rows, theme]) => {
        const t = new Terminal({ cols, rows, theme, fontFamily: 'DejaVu Sans Mono', fontSize: 14, lineHeight: 1, scrollback: 0, cursorInactiveStyle: 'none', allowProposedApi: true });
        t.open(document.getElementById('t'));
        await new Promise((done) => t.write('\x1b[?25l' + text, done));
        await document.fonts.ready;
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      }, [text, Number(cols), Number(rows), colours]);
      const box = await page.$('.xterm-screen');
      const b = await box.boundingBox();
      const out = path.join(to, `${name}-${cols}x${rows}-${theme}.png`);
      await page.screenshot({ path: out, clip: { x: b.x - 8, y: b.y - 8, width: b.width + 16, height: b.height + 16 } });
      await page.close();
    }
  }
  await browser.close();
})().catch((err) => { console.error(err); process.exit(1); });
