package report

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
)

// browse loads a page in Chromium with additional arguments and returns the document after the
// script has run. Any output of the page to the console is an error.
func browse(t *testing.T, page string, args ...string) (dom string) {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		hosttest.LeaveOut(t, "the report in a browser: chromium is not there; "+
			"apt-get install --no-install-recommends chromium installs it")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program,
		append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
			"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions",
			"--disable-sync",
			"--user-data-dir=" + filepath.Join(dir, "profile"), "--enable-logging=stderr",
			"--virtual-time-budget=20000"},
			append(args, "file://"+file)...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, said.String())
	}
	for line := range strings.Lines(said.String()) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the page wrote to the console: %s", line)
		}
	}
	return out.String()
}

// Chromium's virtual time does not wait for the decompression of a page or for its frames, so it may
// be over before the page is drawn. Tests that look at the document load the page again until it is
// drawn, and the others use drawnAtOnce.

var broken = regexp.MustCompile(`id="broken"[^>]*>[^<]*`)

// browseUntil loads a page like browse until its script has drawn a text, or has reported an error.
func browseUntil(t *testing.T, drawn, page string, args ...string) (dom string) {
	t.Helper()
	polltest.Until(t, "the page has "+drawn, func() bool {
		dom = browse(t, page, append(args, "--dump-dom")...)
		return strings.Contains(dom, drawn) || !strings.Contains(broken.FindString(dom), "hidden")
	})
	return dom
}

// drawnAtOnce returns a page with uncompressed data, which its script draws at once.
func drawnAtOnce(t *testing.T, page string) string {
	t.Helper()
	replace := func(old, new string) {
		t.Helper()
		if n := strings.Count(page, old); n != 1 {
			t.Fatalf("the page contains %.60q %d times, want once", old, n)
		}
		page = strings.Replace(page, old, new, 1)
	}
	data := regexp.MustCompile(`id="data">"[^"]*"`).FindString(page)
	replace(data, `id="data">`+unpacked(t, page))
	_, script, _ := strings.Cut(page, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	replace("unpack().then(start)", "Promise.resolve(JSON.parse($('#data').textContent)).then(start)")
	_, changed, _ := strings.Cut(page, "<script>")
	changed, _, _ = strings.Cut(changed, "</script>")
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1]
	replace(policy, strings.Replace(html.UnescapeString(policy), hashOf(script), hashOf(changed), 1))
	return page
}

// TestScriptDrawsManyJobs checks that the script draws every section of 100,000 jobs, with only the
// visible rows in the document.
func TestScriptDrawsManyJobs(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	const n = 100_000
	page := write(t, sample(t, n, 3, "plain"))
	if len(page) > 64<<10+100*n {
		t.Errorf("%d jobs make %d bytes", n, len(page))
	}
	dom := browseUntil(t, "aria-rowindex", page, "--window-size=1240,900")
	if p := broken.FindString(dom); !strings.Contains(p, "hidden") {
		t.Errorf("the page is broken: %s", p)
	}
	for what, least := range map[string]int{`class="cell"`: 24, `<polyline`: 10, `aria-rowindex`: 20,
		`<canvas width=`: 1, `<figcaption`: 8, `scope="col"`: 8, `load average`: 1} {
		t.Run(what, func(t *testing.T) {
			if got := strings.Count(dom, what); got < least || what == "aria-rowindex" && got > 100 {
				t.Errorf("%d of %s, want at least %d", got, what, least)
			}
		})
	}
}

// TestPageCanBeFilteredAndSorted checks that a filter, a click on a heading, and Enter work as in
// `results`. The first job in this order is shown with its attempts. Text from jobs stays text.
func TestPageCanBeFilteredAndSorted(t *testing.T) {
	t.Parallel()
	in := sample(t, 500, 3, hostile)
	page := drawnAtOnce(t, write(t, in))
	// The policy of the page does not allow the script of the test.
	page = regexp.MustCompile(`<meta http-equiv[^>]*>`).ReplaceAllString(page, "") + `<script>setTimeout(() => {
		// Nothing of this may fail; the console would show it.
		const all = (selector, f) => document.querySelectorAll(selector).forEach(f);
		const lanes = document.querySelector('#lanes canvas');
		const point = (e, type, x, y) =>
			e.dispatchEvent(new PointerEvent(type, {bubbles: true, clientX: x, clientY: y}));
		const box = lanes.getBoundingClientRect(), row = box.top + 30;
		all('svg rect', e => {
			const b = e.getBoundingClientRect();
			point(e, 'pointermove', b.left + b.width / 2, b.top + 2);
		});
		for (let x = box.left; x < box.right; x += 9) point(lanes, 'pointermove', x, row);
		for (const key of ['+', 'ArrowRight', 'ArrowLeft', '-', '0']) {
			document.querySelector('#lanes').dispatchEvent(new KeyboardEvent('keydown', {key}));
		}
		point(lanes, 'pointerdown', box.left + 300, row);
		point(lanes, 'pointermove', box.left + 400, row);
		point(lanes, 'pointerup', box.left + 400, row);
		all('[data-zoom]', e => e.click());
		all('#axes select', s => {
			for (let i = 0; i < s.options.length; i++) {
				s.value = i;
				s.dispatchEvent(new Event('change'));
			}
		});
		all('#pick input', e => { e.click(); e.click(); });
		for (const type of ['beforeprint', 'afterprint', 'resize']) dispatchEvent(new Event(type));
		document.querySelector('#heat .cell').dispatchEvent(new Event('click'));
		all('figure svg', e => { if (!e.closest('figure').querySelector('.key')) document.body.dataset.keyless = 1; });
		document.body.dataset.exercised = 1;
	}, 1000);
	setTimeout(() => {
		const filter = document.querySelector('#filter');
		filter.value = 'state=failed time>30s seed!=1 traceback C<=10';
		filter.dispatchEvent(new Event('input'));
		setTimeout(() => {
			for (let i = 0; i < 2; i++) document.querySelector('#table th button[title=elapsed_seconds]').click();
			const key = k => document.querySelector('#table').dispatchEvent(new KeyboardEvent('keydown', {key: k}));
			key('ArrowDown'), key('Enter');
		}, 1000);
	}, 3000)</script>`
	dom := browse(t, page, "--dump-dom", "--window-size=1240,900")
	if !strings.Contains(dom, `data-exercised="1"`) {
		t.Error("the page was not exercised to the end")
	}
	if !strings.Contains(dom, "based on ") {
		t.Error("the heat map does not say how many jobs are missing")
	}
	if strings.Contains(dom, "data-keyless") {
		t.Error("a chart has no legend")
	}
	if strings.Contains(dom, "data-pwned") || strings.Contains(dom, "<img") {
		t.Error("the text of a job has become markup")
	}
	var queries []*query.Query
	for _, text := range []string{"state=failed", "time>30", "seed!=1", "C<=10"} {
		t.Run(text, func(t *testing.T) {
			q, err := query.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			queries = append(queries, q)
		})
	}
	want, _, err := in.Table.Where(queries...)
	if err != nil || want.Len() == 0 {
		t.Fatal(want.Len(), err)
	}
	if text := fmt.Sprintf("%d of 500 jobs", want.Len()); !strings.Contains(dom, text) {
		t.Errorf("not %q but %s", text, regexp.MustCompile(`id="matched"[^<]*`).FindString(dom))
	}
	want, err = want.SortBy(results.Order{Column: "time", Desc: true})
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?s)<dialog[^>]* open.*?</dialog>`).FindString(dom)
	for _, text := range []string{fmt.Sprintf(">Job %d ", want.Job(0)), fmt.Sprintf("<td>%d.1</td>", want.Job(0)),
		"last line of stderr"} {
		t.Run(text, func(t *testing.T) {
			if !strings.Contains(shown, text) {
				t.Errorf("the dialog does not have %q: %s", text, shown)
			}
		})
	}
}

// TestAttemptsHaveTheColorsOfTheirStates checks that the drawn attempts have the colors of their
// states, on a light and on a dark background.
func TestAttemptsHaveTheColorsOfTheirStates(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	page := drawnAtOnce(t, write(t, sample(t, 400, 3, hostile)))
	for i, theme := range []string{"dark", "light"} {
		file := filepath.Join(t.TempDir(), theme+".png")
		browse(t, page, "--screenshot="+file, "--window-size=1240,2300",
			fmt.Sprintf("--blink-settings=preferredColorScheme=%d", i))
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		pixels := map[[3]uint8]int{}
		for y := 0; y < img.Bounds().Dy(); y += 3 {
			for x := 0; x < img.Bounds().Dx(); x += 3 {
				r, g, b, _ := img.At(x, y).RGBA()
				pixels[[3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}]++
			}
		}
		for what, wants := range map[string][2]string{"the ground": {"#0f1317", "#f5f6f8"},
			"success": {"#35ab9b", "#23998a"}, "failure": {"#ee6c60", "#d2453a"}, "loss": {"#b088e2", "#8a54c2"}} {
			var c [3]uint8
			fmt.Sscanf(wants[i], "#%02x%02x%02x", &c[0], &c[1], &c[2])
			if pixels[c] < 4 {
				t.Errorf("%s: %d pixels of %s (%s)", theme, pixels[c], what, wants[i])
			}
		}
	}
}

// TestReportOfAnEmptyRun checks the report of a run without jobs, and of one in which no job has
// started.
func TestReportOfAnEmptyRun(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	for n := range 2 {
		table := &jobs.Table{}
		if n > 0 {
			table.Specs = []*jobs.Spec{{ID: 1, Command: "true", Options: jobs.NoOptions}}
		}
		table.AcceptStored()
		place := results.RunInfo{Name: "r"}
		page := write(t, &Input{Run: "r", At: time.Now(), Jobs: table,
			Table: results.NewTable(results.TableInput{Rows: place.Rows(table, isOpen)})})
		if want := "0 of " + text.Plural(n, "job"); !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
		if counted := ">" + text.Plural(n, "job") + "<"; !strings.Contains(browseUntil(t, counted, page), counted) {
			t.Errorf("%d jobs: not counted", n)
		}
	}
}

// TestPageFitsItsWindow checks that the page fits its window, from that of a phone to a large one,
// whatever the names of jobs are. Its sections do not overlap, and every chart has a size.
func TestPageFitsItsWindow(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	// It does not allow the frames of the test.
	policy := regexp.MustCompile(`<meta http-equiv[^>]*>`)
	page := policy.ReplaceAllString(drawnAtOnce(t, write(t, sample(t, 200, 3, hostile+strings.Repeat("W", 300)))), "")
	var frames strings.Builder
	for _, width := range []int{400, 800, 1240, 2560} {
		fmt.Fprintf(&frames, `<iframe style="border:0;width:%dpx;height:900px" srcdoc="%s"></iframe>`, width,
			html.EscapeString(page))
	}
	dom := browseUntil(t, `<p id="found">found: `, frames.String()+`<p id="broken" hidden></p><p id="found"></p><script>
	setTimeout(function check() {
		const frames = [...document.querySelectorAll('iframe')];
		if (!frames.every(f => f.contentDocument?.querySelector('[aria-rowindex]'))) return setTimeout(check, 100);
		const found = [];
		frames.forEach(f => {
			const d = f.contentDocument, box = e => e.getBoundingClientRect(), w = f.clientWidth + ' px: ';
			if (d.documentElement.scrollWidth > f.clientWidth) {
				const isWide = e => e.scrollWidth > f.clientWidth || box(e).right > f.clientWidth;
				const wide = [...d.querySelectorAll('*')].filter(e =>
					isWide(e) && !e.closest('.scroll, #table, #lanes, figcaption'));
				const names = wide.slice(0, 9).map(e => e.tagName + ' in ' + (e.closest('[id]') || d.body).id);
				found.push(w + 'the page is ' + d.documentElement.scrollWidth + ' px wide, for ' + names);
			}
			const sections = [...d.querySelectorAll('section')].filter(e => !e.hidden);
			if (sections.length < 6) found.push(w + sections.length + ' sections');
			sections.forEach((e, i) => {
				if (i && box(e).top < box(sections[i - 1]).bottom) {
					found.push(w + e.id + ' overlaps ' + sections[i - 1].id);
				}
			});
			d.querySelectorAll('section canvas, section svg').forEach(e => {
				if (!(box(e).width > 5 && box(e).height > 5)) {
					found.push(w + 'a chart of ' + e.closest('section').id + ' has no size');
				}
			});
		});
		document.querySelector('#found').textContent = 'found: ' + (found.join('; ') || 'all is well');
	}, 3000)</script>`, "--window-size=2600,4000")
	if found := regexp.MustCompile(`<p id="found">([^<]*)`).FindStringSubmatch(dom); found == nil ||
		found[1] != "found: all is well" {
		t.Errorf("the page found %q, want \"found: all is well\"", found)
	}
}

// TestPageCanBePrinted checks that the page can be printed on several sheets, including all jobs of
// a small run.
func TestPageCanBePrinted(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.pdf")
	browse(t, drawnAtOnce(t, write(t, sample(t, 200, 3, hostile))), "--print-to-pdf="+file)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(b, -1)); n < 4 || n > 40 {
		t.Errorf("%d sheets", n)
	}
}
