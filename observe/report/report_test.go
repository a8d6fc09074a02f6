package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
)

const hostile = `</script><img src=x onerror="document.body.dataset.pwned=1"><!--'"` +
	"\x1b[31m\u202egnp.exe\u0000\u2028\xff"

// sample returns a run of a grid with n jobs on hosts of four slots. Most jobs succeed, some fail,
// and a few time out, are lost and retried, or are running. text is part of every name and text.
func sample(t testing.TB, n, numHosts int, text string) *Input {
	t.Helper()
	begin := jobs.StampOf(time.Date(2026, 3, 14, 15, 2, 0, 0, time.UTC))
	var specs []*jobs.Spec
	for i := range n {
		specs = append(specs, &jobs.Spec{ID: jobs.ID(i + 1), Name: fmt.Sprintf("%s %d", text, i), Command: "train " +
			text, Options: jobs.NoOptions,
			Labels: jobs.NewLabels("", []jobs.Param{{Name: "C",
				Value: fmt.Sprint([]string{"0.1", "1", "10", "100"}[i%4])}, {Name: text, Value: fmt.Sprint(i / 4 % 6)},
				{Name: "rate", Value: fmt.Sprint(float64(1+i*7919%1000) / 1000)}, {Name: "seed",
					Value: fmt.Sprint(i / 24 % 3)}})})
	}
	table := &jobs.Table{Specs: specs}
	fold := func(r jobs.Record) {
		if err := jobs.Fold(table, &r); err != nil {
			t.Fatal(err)
		}
	}
	in := &Input{Run: text, Dir: "/runs/" + text, Program: "dcs-tui test", Created: begin.Time(), Jobs: table,
		Ended: map[jobs.AttemptID]jobs.Stamp{}, Notes: []string{text}}
	fold(jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: n})
	free := make([]jobs.Stamp, 4*numHosts)
	seq := int64(0)
	for i := range n {
		slot := 0
		for k := range free {
			if free[k] < free[slot] {
				slot = k
			}
		}
		start := begin + free[slot]
		host := fmt.Sprintf("ws%02d", slot/4+1)
		if slot/4 == 1 {
			host = text
		}
		took := jobs.Stamp(20*time.Second) + jobs.Stamp(i*7919%400)*jobs.Stamp(time.Second)/4
		r := jobs.Record{Kind: jobs.KindExited, Job: jobs.ID(i + 1), N: 1, Host: host, Slot: slot%4 + 1,
			Next: jobs.Succeeded,
			Outcome: &jobs.Outcome{Started: start, Ended: start + took, CPU: time.Duration(took) * 9 / 10,
				MaxRSSBytes: int64(20+i%300) << 20}}
		fold(jobs.Record{Kind: jobs.KindLaunching, Job: r.Job, N: 1, Host: host, At: start})
		fold(jobs.Record{Kind: jobs.KindRunning, Job: r.Job, N: 1, Host: host, Slot: r.Slot, Started: start, At: start})
		switch {
		case i%97 == 5: // lost, then retried
			took /= 3
			lost := jobs.Record{Kind: jobs.KindLost, Job: r.Job, N: 1, Host: host, Reason: "the host has rebooted",
				At: start + took}
			fold(lost)
			in.Ended[lost.Attempt()] = lost.At
			r.N, r.Outcome.Started, r.Outcome.Ended = 2, start+2*took, start+3*took
			fold(jobs.Record{Kind: jobs.KindLaunching, Job: r.Job, N: 2, Host: host, At: start + took})
			took *= 3
		case i%23 == 4:
			r.Next, r.Outcome.Exit, r.Outcome.LastLine, r.Charged = jobs.Failed, 1+i%2, "Traceback: "+text, true
		case i%61 == 7:
			r.Next, r.Outcome.TimedOut, r.Outcome.Signal = jobs.TimedOut, true, "SIGTERM"
		case i > n-3:
			continue
		}
		free[slot] += took
		seq++
		r.Seq = seq
		fold(r)
	}
	in.At = time.Unix(0, int64(begin+slices.Max(free)))
	in.Loads = map[string][]live.Sample{"ws01": nil, text: nil, "gone": nil}
	for host := range in.Loads {
		for at := begin.Time().Add(-time.Minute); at.Before(in.At); at = at.Add(30 * time.Second) {
			in.Loads[host] = append(in.Loads[host], live.Sample{At: at, Load: 2.5})
		}
	}
	in.Known = in.At
	place := results.RunInfo{UID: "u", Name: in.Run, Dir: in.Dir}
	list := slices.Concat(place.Rows(table, jobs.JobState.Terminal).All(), place.Rows(table, isOpen).All())
	values := make([][]string, len(list))
	for i := range list {
		x, y := float64(i%4), float64(i/4%6)
		values[i] = []string{fmt.Sprintf("%.4f", 0.95-0.03*(x-2)*(x-2)-0.02*(y-3)*(y-3)+0.004*float64(i/24%3))}
		if i%50 == 0 {
			values[i] = []string{[]string{"nan", text, "inf", ""}[i/50%4]}
		}
	}
	in.Table = results.NewTable(results.TableInput{Jobs: list, Names: []string{"acc"}, Metrics: values})
	return in
}

func write(t testing.TB, in *Input) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// unpacked returns the data of a page as JSON.
func unpacked(t *testing.T, page string) string {
	t.Helper()
	packed := regexp.MustCompile(`id="data">"([^"]*)"`).FindStringSubmatch(page)
	if packed == nil {
		t.Fatal("the page has no data")
	}
	z, err := gzip.NewReader(base64.NewDecoder(base64.RawURLEncoding, strings.NewReader(packed[1])))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "<", `\u003c`)
}

// TestPageIsSelfContainedAndInert checks that the page refers to nothing outside itself and that
// its policy allows only its own script and style. Text from jobs is not markup and has no control
// characters.
func TestPageIsSelfContainedAndInert(t *testing.T) {
	page := write(t, sample(t, 300, 2, hostile))
	for _, bad := range []string{"<img", "\x1b", "\u202e", "\u2028", "\x00", "\xff", "http:", "https:", "src=x"} {
		t.Run(bad, func(t *testing.T) {
			text := strings.ReplaceAll(page, "http://www.w3.org/2000/svg", "")
			if at := strings.Index(text, bad); at >= 0 && !strings.Contains(text[max(0, at-60):at], "&lt;") {
				t.Errorf("the page has %q: …%q", bad, text[max(0, at-80):at+20])
			}
		})
	}
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil {
		t.Fatal("no policy")
	}
	for _, element := range []string{"script", "style"} {
		t.Run(element, func(t *testing.T) {
			_, text, _ := strings.Cut(page, "<"+element+">")
			text, _, _ = strings.Cut(text, "</"+element+">")
			if want := element + "-src '" + hashOf(text) + "'"; !strings.Contains(html.UnescapeString(policy[1]),
				want) {
				t.Errorf("the policy %s lacks %s", policy[1], want)
			}
		})
	}
	if n := strings.Count(page, "</script>"); n != 2 {
		t.Errorf("%d ends of scripts, not 2", n)
	}
}

// TestFailuresNameTheirHosts checks that each example of a failure is followed by its own host.
func TestFailuresNameTheirHosts(t *testing.T) {
	table := &jobs.Table{}
	for i := range 3 {
		table.Specs = append(table.Specs, &jobs.Spec{ID: jobs.ID(i + 1), Command: "false", Options: jobs.NoOptions})
	}
	table.AcceptStored()
	fold := func(r jobs.Record) {
		if err := jobs.Fold(table, &r); err != nil {
			t.Fatal(err)
		}
	}
	for i, host := range []string{"node2", "node1", "node1"} {
		id := jobs.ID(i + 1)
		fold(jobs.Record{Kind: jobs.KindLaunching, Job: id, N: 1, Host: host})
		fold(jobs.Record{Kind: jobs.KindExited, Job: id, N: 1, Seq: int64(i + 1), Host: host, Next: jobs.Failed,
			Outcome: &jobs.Outcome{Exit: 1, Started: 1, Ended: 2}})
	}
	place := results.RunInfo{Dir: "/d"}
	page := write(t, &Input{Run: "r", At: time.Now(), Jobs: table,
		Table: results.NewTable(results.TableInput{Rows: place.Rows(table, nil)})})
	_, row, _ := strings.Cut(page, `<td class="cause">`)
	row, _, _ = strings.Cut(row, "</tr>")
	row = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(row, "")
	if !strings.Contains(row, "job 1 on node2, 2, 3 on node1") {
		t.Errorf("the examples are %q", row)
	}
}

// TestDataAgreesWithTheTable checks that the data of each job and attempt agrees with the table of
// the run.
func TestDataAgreesWithTheTable(t *testing.T) {
	in := sample(t, 300, 2, hostile)
	var d struct {
		Rows    int
		Columns []struct {
			Name, Role string
			N          []any
			D          []string
			I          []int
		}
		Attempts attempts
	}
	plainNumbers := json.NewDecoder(strings.NewReader(unpacked(t, write(t, in))))
	plainNumbers.UseNumber()
	if err := plainNumbers.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.Rows != 300 {
		t.Errorf("%d rows", d.Rows)
	}
	cells := map[string][]string{}
	for _, c := range d.Columns {
		for row := range d.Rows {
			at := row
			if c.I != nil {
				at = c.I[row]
			}
			switch {
			case c.D != nil:
				cells[c.Name] = append(cells[c.Name], c.D[at])
			case c.N[row] == nil:
				cells[c.Name] = append(cells[c.Name], "")
			default:
				cells[c.Name] = append(cells[c.Name], fmt.Sprint(c.N[row]))
			}
		}
	}
	for row := range in.Table.Len() {
		for i, c := range in.Table.Columns {
			got, ok := cells[text.Clean(c.Name, 0)]
			if !ok {
				if !slices.Contains(omittedColumns, c.Name) {
					t.Fatalf("no column %q", c.Name)
				}
				continue
			}
			want := text.Clean(in.Table.At(row, i).Text, 0)
			a, isA := query.ParseNumber(got[row])
			// A precision of milliseconds suffices.
			if b, isB := query.ParseNumber(want); got[row] != want && !(isA && isB && math.Abs(a-b) <= 0.0005) {
				t.Errorf("row %d, %s: %q, want %q", row, c.Name, got[row], want)
			}
		}
	}
	ran := 0
	for i := range in.Jobs.Jobs {
		for _, a := range in.Jobs.Jobs[i].Attempts {
			took := time.Duration(d.Attempts.Took[ran]) * time.Millisecond
			if int(d.Attempts.Job[ran]) != i+1 || a.Outcome != nil &&
				took != a.Outcome.Elapsed().Truncate(time.Millisecond) || a.State == jobs.AttemptLost && took <= 0 ||
				a.State.Open() != (took < 0) {
				t.Errorf("attempt %s: job %d, %v", a.ID, d.Attempts.Job[ran], took)
			}
			ran++
		}
	}
	if len(d.Attempts.Job) != ran {
		t.Errorf("%d attempts, want %d", len(d.Attempts.Job), ran)
	}
	for i, points := range d.Attempts.Loads { // samples before the first attempt are omitted
		end := in.At.Sub(in.Created).Seconds()
		if n := len(points); n < 20 || n > maxLoads || points[0][0] < 0 || points[n-1][0] > end ||
			points[n-1][0] < end-60 || points[n/2][1] != 2.5 {
			t.Errorf("%s: %d points of its load, %v", d.Attempts.Hosts[i], n, points)
		}
	}
}

// TestReportOfAHugeRun checks that the page of a run with very many jobs has only some of them, but
// counts all, says so, and has the examples of failures.
func TestReportOfAHugeRun(t *testing.T) {
	defer func(n int) { maxRows = n }(maxRows)
	in := sample(t, 2000, 3, "plain")
	whole := len(write(t, in))
	maxRows = 200
	page := write(t, in)
	var d struct {
		Rows    int
		Columns []struct {
			Name string
			N    []any
		}
		Attempts struct{ Job []int }
	}
	if err := json.Unmarshal([]byte(unpacked(t, page)), &d); err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, g := range results.Summarize(in.Jobs).Failures {
		examples += len(g.Examples)
	}
	if d.Rows < 100 || d.Rows > 300+examples || len(d.Attempts.Job) > 0 || len(page) > whole*2/3 {
		t.Errorf("got %d rows, %d attempts, and %d bytes of %d", d.Rows, len(d.Attempts.Job), len(page), whole)
	}
	shown := map[any]bool{}
	for _, c := range d.Columns {
		for _, v := range c.N {
			shown[v] = shown[v] || c.Name == "job"
		}
	}
	for _, g := range results.Summarize(in.Jobs).Failures {
		if !shown[float64(g.Examples[0].Job)] {
			t.Errorf("job %d, an example of %q, is missing", g.Examples[0].Job, g.Cause)
		}
	}
	for _, want := range []string{" 2,000 jobs", "Note: the run has 2,000 jobs: the table and the charts show "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// BenchmarkWrite measures the time to write a report.
func BenchmarkWrite(b *testing.B) {
	in := sample(b, 100_000, 3, "plain")
	for b.Loop() {
		if err := Write(io.Discard, in); err != nil {
			b.Fatal(err)
		}
	}
}

func isOpen(s jobs.JobState) bool { return !s.Terminal() }
