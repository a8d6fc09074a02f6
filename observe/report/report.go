package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/results"
)

// Input holds the data of a report.
type Input struct {
	Run        string
	Dir        string
	Program    string // name and version
	Created    time.Time
	At         time.Time // when the run was read
	Known      time.Time // time until which unfinished attempts are known to have run
	Dispatched bool      // somebody dispatches the run
	Jobs       *jobs.Table
	Table      *results.Table // a row for each job
	// Ended holds the times when attempts without an outcome were given up or ended, by the
	// dispatcher's clock.
	Ended map[jobs.AttemptID]jobs.Stamp
	Loads map[string][]live.Sample // of hosts; may be nil
	Notes []string                 // for the reader of the report

	isSample bool // Table has only some of the jobs
}

// Limits of the parts that are rendered without the script.
const (
	maxCauses = 50
	maxHosts  = 1000
	maxText   = 1000 // runes of a command and of other texts
	maxNotes  = 20
)

// maxRows is the maximum number of jobs that the script draws. More would make a page of more than
// 3 MB, which a browser opens slowly. Tests lower it.
var maxRows = 100_000

var (
	//go:embed page/report.html
	pageText string
	//go:embed page/report.css
	styleText string
	//go:embed page/charts.js
	chartsText string
	//go:embed page/report.js
	scriptText string

	pageTemplate = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("report").Parse(pageText))
	})
)

// page holds the data of the template.
type page struct {
	Policy string
	Style  template.CSS
	Script template.JS
	Data   string // see encode

	Run, Dir, Program, Status string
	Created, AsOf             string
	Lead                      string // one sentence about the run
	States                    []share
	Facts                     []fact
	Causes                    []cause
	MoreCauses                string
	Hosts                     []host
	MoreHosts                 string
	Notes                     []string
}

// share is a state and the width of its part of the bar of all jobs, in thousandths.
type share struct {
	State, Name, Count string
	At, Width          float64
}

type fact struct{ Name, Value, Note string }

type cause struct {
	Jobs        string
	Share       int // share of all failures, in percent
	Cause, Last string
	Examples    []example
}

// example is a failed job and its host. Host is "" for a job on the host of the next example, so
// that each host is named once, after its jobs.
type example struct {
	Job  jobs.ID
	Host string
}

type host struct {
	Name, Attempts, Failed, Lost, Busy string
	Share                              int // of the busiest host, in percent
}

// Write writes the report. If the run has more than maxRows jobs, the table and the charts show a
// random sample of about nine tenths of maxRows.
func Write(w io.Writer, in *Input) error {
	drawn, s := *in, results.Summarize(in.Jobs)
	in = &drawn
	in.sample(s.Failures)
	data, err := encode(in)
	if err != nil {
		return fmt.Errorf("encode the data of the report: %w", err)
	}
	p := newPage(in, s)
	p.Data = data
	script := chartsText + scriptText
	p.Style, p.Script = template.CSS(styleText), template.JS(script)
	p.Policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; "+
		"form-action 'none'",
		hashOf(script), hashOf(styleText))
	return pageTemplate().Execute(w, p)
}

// hashOf returns the name of an inline script or style in a content security policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

const timeLayout = "2006-01-02 15:04:05 MST"

func newPage(in *Input, s *results.Summary) *page {
	p := &page{
		Run: text.Clean(in.Run, maxText), Dir: text.Clean(in.Dir, maxText), Program: in.Program,
		Created: in.Created.Format(timeLayout), AsOf: in.At.Format(timeLayout),
		Notes: in.Notes[:min(len(in.Notes), maxNotes)],
	}
	for i := range p.Notes {
		p.Notes[i] = text.Clean(p.Notes[i], maxText)
	}
	left := in.Jobs.Unfinished()
	switch {
	case left == 0:
		p.Status = "finished"
	case in.Dispatched:
		p.Status = "running"
	default:
		p.Status = "stopped"
	}
	p.setStates(s)
	p.setFacts(s, left)
	p.setCauses(s)
	p.setHosts(s)
	return p
}

// setStates computes the bar of all jobs. Each state that has jobs gets a visible width.
func (p *page) setStates(s *results.Summary) {
	const wholeWidth, minWidth = 1000, 4
	at := 0.0
	for _, state := range []jobs.JobState{jobs.Succeeded, jobs.Failed, jobs.TimedOut, jobs.Canceled, jobs.Skipped,
		jobs.Running, jobs.Queued} {
		if n := s.Counts[state]; n > 0 {
			width := max(minWidth, float64(n)/float64(s.Jobs)*wholeWidth)
			p.States = append(p.States, share{state.String(), strings.ReplaceAll(state.String(), "_", " "),
				text.Thousands(n), at, width})
			at += width
		}
	}
	for i := range p.States { // the minimum widths may have made the bar too long
		p.States[i].At, p.States[i].Width = p.States[i].At*wholeWidth/at, p.States[i].Width*wholeWidth/at
	}
}

func (p *page) setFacts(s *results.Summary, left int) {
	ok, over := s.Counts[jobs.Succeeded], s.Jobs-left
	p.Lead = fmt.Sprintf("%s of %s succeeded", text.Thousands(ok), text.Plural(s.Jobs, "job"))
	if left > 0 {
		p.Lead = fmt.Sprintf("%s of %s over, %s of them succeeded", text.Thousands(over), text.Plural(s.Jobs, "job"),
			text.Thousands(ok))
	}
	add := func(name, value, note string) { p.Facts = append(p.Facts, fact{name, value, note}) }
	if s.First != 0 {
		add("Wall time", text.Duration(s.Wall()), "first start to last end")
		add("Run time", text.Duration(s.Busy), "of all attempts")
		use := text.If(s.Busy > 0, fmt.Sprintf("%.0f%% of run time", 100*s.CPU.Seconds()/s.Busy.Seconds()))
		add("CPU time", text.Duration(s.CPU), use)
		if s.LongestJob != 0 {
			add("Longest job", text.Duration(s.Longest), fmt.Sprintf("job %d", s.LongestJob))
		}
		if s.MaxRSSBytes > jobs.MemoryFloor {
			add("Peak memory", text.Size(s.MaxRSSBytes), fmt.Sprintf("job %d", s.MaxRSSJob))
		}
	}
	add("Attempts", text.Thousands(s.Attempts), text.Plural(s.Retried, "job")+" more than once")
	if s.Lost > 0 {
		add("Lost", text.Thousands(s.Lost), "attempts, with a host")
	}
	if s.Wasted > 0 {
		add("Not counted", text.Duration(s.Wasted), "run time of other attempts")
	}
	if s.Avoided > 0 {
		add("Avoided", text.Thousands(s.Avoided), "jobs, as hard as one that timed out")
	}
}

func (p *page) setCauses(s *results.Summary) {
	total := max(1, s.Counts[jobs.Failed]+s.Counts[jobs.TimedOut])
	rest := 0
	for i, g := range s.Failures {
		if i >= maxCauses {
			rest += g.Count
			continue
		}
		c := cause{Jobs: text.Thousands(g.Count), Share: (100*g.Count + total/2) / total,
			Cause: text.Clean(g.Cause, maxText),
			Last:  text.Clean(g.LastLine, maxText)}
		for i, e := range g.Examples {
			host := text.Clean(e.Host, maxText)
			if i+1 < len(g.Examples) && g.Examples[i+1].Host == e.Host {
				host = ""
			}
			c.Examples = append(c.Examples, example{e.Job, host})
		}
		p.Causes = append(p.Causes, c)
	}
	if rest > 0 {
		p.MoreCauses = fmt.Sprintf("and %s with %s", text.Plural(rest, "job"),
			text.Plural(len(s.Failures)-maxCauses, "other cause"))
	}
}

func (p *page) setHosts(s *results.Summary) {
	most := time.Duration(1)
	for _, h := range s.Hosts {
		most = max(most, h.Busy)
	}
	for _, h := range s.Hosts[:min(len(s.Hosts), maxHosts)] {
		p.Hosts = append(p.Hosts, host{text.Clean(h.Host, maxText), text.Thousands(h.Attempts),
			text.Thousands(h.Failed),
			text.Thousands(h.Lost), text.Duration(h.Busy), int(100 * h.Busy / most)})
	}
	if n := len(s.Hosts) - maxHosts; n > 0 {
		p.MoreHosts = "and " + text.Plural(n, "more host")
	}
}
