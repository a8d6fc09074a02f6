package report

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
)

// data is what the script draws. It holds columns, not rows, because most of a column repeats.
type data struct {
	Run string `json:"run"`
	At  int64  `json:"at"` // attempts are known to have run until then; Unix time in ms
	// Start of the first attempt, to which other times are relative.
	Start    int64    `json:"start"`
	Rows     int      `json:"rows"`
	Columns  []column `json:"columns"`
	Attempts attempts `json:"attempts"`
}

// column is a column of the table of jobs. It holds either numbers, one for each row, or distinct
// texts, the number for each text that is written as a number, and for each row the index of its
// text. Without Index, row i has text i.
type column struct {
	Name    string   `json:"name"`
	Role    string   `json:"role"` // fact, param or metric
	Type    string   `json:"type,omitempty"`
	Shown   bool     `json:"shown,omitempty"`
	Numbers numbers  `json:"n,omitempty"`
	Texts   []string `json:"d,omitempty"`
	Index   []int32  `json:"i,omitempty"`
}

// attempts holds the attempts that have started, or may have, by job. Each text in Hosts and Why
// is unique.
type attempts struct {
	Hosts []string `json:"hosts"`
	Why   []string `json:"whys"`
	Job   []int32  `json:"job"`
	N     []int32  `json:"num"`
	Host  []int32  `json:"host"`
	Slot  []int32  `json:"slot"`
	At    []int64  `json:"at"`   // start
	Took  []int64  `json:"took"` // -1: it may be running
	CPU   []int64  `json:"cpu"`  // milliseconds
	State []int8   `json:"state"`
	Cause []int32  `json:"why"`

	Loads [][][2]float64 `json:"loads"` // of each host: seconds since Start, load average
}

// The states of attempts as the page shows them.
const (
	ranSucceeded int8 = iota
	ranFailed
	ranTimedOut
	ranCanceled
	ranLost
	ranSuperseded
	ranOpen
)

// omittedColumns holds columns that are useless on another machine, or that repeat others.
var omittedColumns = []string{"stdout", "stderr", "reason", "failures"}

// encode returns the data as compressed JSON, in base64 with the alphabet for URLs, which
// html/template does not escape.
func encode(in *Input) (string, error) {
	d := &data{Run: text.Clean(in.Run, maxText), At: in.Known.UnixMilli(), Rows: in.Table.Len(),
		Start: in.Known.UnixMilli()}
	shown := in.Table.ShownColumns()
	var builders []*columnBuilder
	for i, c := range in.Table.Columns {
		if c.Role != results.Fact || !slices.Contains(omittedColumns, c.Name) {
			builders = append(builders, newColumn(in.Table, i, slices.Contains(shown, i)))
		}
	}
	for row := range in.Table.Len() { // all cells of a row are made from the same job, which is unpacked once
		for _, c := range builders {
			c.add(in.Table.At(row, c.index))
		}
	}
	for _, c := range builders {
		d.Columns = append(d.Columns, c.build())
	}
	d.Columns = append(d.Columns, lastLines(in))
	if !in.isSample { // a part of the attempts would show wrong loads
		d.attempts(in)
	}
	var b bytes.Buffer
	text := base64.NewEncoder(base64.RawURLEncoding, &b)
	packed := gzip.NewWriter(text)
	err := cmp.Or(json.NewEncoder(packed).Encode(d), packed.Close(), text.Close())
	return b.String(), err
}

// sample reduces a table with more than maxRows jobs to some that are chosen at random, and to the
// examples of failures. Every tenth job, for example, could all have the same seed. The same run
// gives the same report.
func (in *Input) sample(failures []results.Group) {
	n := in.Table.Len()
	if n <= maxRows {
		return
	}
	examples := map[jobs.ID]bool{}
	for _, g := range failures[:min(len(failures), maxCauses)] {
		for _, e := range g.Examples {
			examples[e.Job] = true
		}
	}
	all := in.Table
	in.isSample = true
	random := rand.New(rand.NewPCG(1, 1))
	in.Table = all.Keep(func(row int) bool { return random.IntN(n) < maxRows*9/10 || examples[all.Job(row)] })
	in.Notes = slices.Concat([]string{fmt.Sprintf("the run has %s: the table and the charts show %s, "+
		"chosen at random, and the timeline and the load of the hosts are left out; dcs-tui results prints all",
		text.Plural(n, "job"), text.Thousands(in.Table.Len()))}, in.Notes)
}

var roleNames = [...]string{results.Fact: "fact", results.Param: "param", results.Metric: "metric",
	results.Stat: "metric"}

var typeNames = map[query.Type]string{query.DurationType: "duration", query.SizeType: "size", query.TimeType: "time"}

// columnBuilder builds a column of the table row by row.
type columnBuilder struct {
	column
	index     int // of the column in the table
	isNumeric bool
	texts     dictionary
}

func newColumn(t *results.Table, i int, shown bool) *columnBuilder {
	from := &t.Columns[i]
	return &columnBuilder{index: i, column: column{Name: text.Clean(from.Name, maxText), Role: roleNames[from.Role],
		Type: typeNames[from.Type], Shown: shown}, isNumeric: from.Role == results.Fact &&
		(from.Type == query.NumberType || from.Type == query.DurationType || from.Type == query.SizeType)}
}

// add adds the value of the next row.
func (c *columnBuilder) add(v query.Value) {
	if c.isNumeric {
		v.Number = math.Round(v.Number*1000) / 1000
		c.Numbers = append(c.Numbers, v)
		return
	}
	at := c.texts.index(v.Text)
	c.Index = append(c.Index, at)
	if int(at) == len(c.Numbers) {
		c.Numbers = append(c.Numbers, v)
	}
}

// build returns the column when all rows were added.
func (c *columnBuilder) build() column {
	if c.isNumeric {
		return c.column
	}
	c.Texts = c.texts.texts.Values
	if len(c.Texts) == len(c.Index) {
		c.Index = nil
	}
	if c.Role == roleNames[results.Fact] {
		c.Numbers = nil
	}
	return c.column
}

// lastLines returns the column with the last line of stderr of each job that failed.
func lastLines(in *Input) column {
	c, d := column{Name: "last_line", Role: roleNames[results.Fact]}, dictionary{}
	if _, err := in.Table.Column(c.Name); err == nil {
		c.Name = "dcs." + c.Name
	}
	var reader jobs.RowReader
	for row := range in.Table.Len() {
		last := ""
		if a := reader.Job(in.Jobs, in.Table.Job(row)).CountedAttempt(); a != nil && a.Outcome != nil {
			last = a.Outcome.LastLine
		}
		c.Index = append(c.Index, d.index(last))
	}
	c.Texts = d.texts.Values
	return c
}

// dictionary numbers distinct texts, which it cleans.
type dictionary struct{ texts jobs.Numbering[string] }

func (d *dictionary) index(msg string) int32 {
	return int32(d.texts.Number(text.Clean(msg, maxText)))
}

// numbers are written as JSON, with null for missing values and texts for NaN and infinities.
type numbers []query.Value

func (list numbers) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case v.Kind != query.Number:
			b = append(b, "null"...)
		case math.IsNaN(v.Number) || math.IsInf(v.Number, 0):
			b = strconv.AppendQuote(b, query.NumberValue(v.Number).String())
		default:
			b = append(b, query.NumberValue(v.Number).String()...)
		}
	}
	return append(b, ']'), nil
}

func (d *data) attempts(in *Input) {
	var hosts, why dictionary
	t := &d.Attempts
	first := jobs.StampOf(in.Known)
	var starts []jobs.Stamp
	for j := range in.Jobs.Rows() {
		for _, a := range j.Attempts {
			start := cmp.Or(a.Started, a.Launched)
			if a.NeverRan() || a.State == jobs.AttemptLaunching || start == 0 {
				continue
			}
			state, end := endOf(in, a)
			took, cpu, cause := int64(-1), int64(0), ""
			if end != 0 {
				took = max(0, end.Sub(start)).Milliseconds()
			}
			if a.Outcome != nil {
				cpu = a.Outcome.CPU.Milliseconds()
			}
			if state != ranSucceeded && state != ranOpen && (a.Outcome != nil || a.Reason != "") {
				cause = results.Cause(jobs.Failed, a.Reason, a.Outcome)
			}
			first = min(first, start)
			starts = append(starts, start)
			t.Job, t.N, t.Slot = append(t.Job, int32(a.ID.Job)), append(t.N, int32(a.ID.N)), append(t.Slot, a.Slot)
			t.Host, t.Cause = append(t.Host, hosts.index(a.Host)), append(t.Cause, why.index(cause))
			t.Took, t.CPU, t.State = append(t.Took, took), append(t.CPU, cpu), append(t.State, state)
		}
	}
	for _, start := range starts {
		t.At = append(t.At, start.Sub(first).Milliseconds())
	}
	t.Hosts, t.Why, d.Start = hosts.texts.Values, why.texts.Values, first.Time().UnixMilli()
	t.Loads = make([][][2]float64, len(t.Hosts))
	for name, list := range in.Loads {
		if i := slices.Index(t.Hosts, text.Clean(name, maxText)); i >= 0 {
			t.Loads[i] = averagedLoads(list, first.Time())
		}
	}
}

// maxLoads is the maximum number of points of the load of a host.
const maxLoads = 240

// averagedLoads returns the samples after a time, averaged if there are too many.
func averagedLoads(list []live.Sample, begin time.Time) (points [][2]float64) {
	list = list[sort.Search(len(list), func(i int) bool { return !list[i].At.Before(begin) }):]
	n := min(len(list), maxLoads)
	for i := range n {
		var at, load float64
		part := list[i*len(list)/n : (i+1)*len(list)/n]
		for _, s := range part {
			at, load = at+s.At.Sub(begin).Seconds(), load+s.Load
		}
		round := func(v float64) float64 { return math.Round(v/float64(len(part))*100) / 100 }
		points = append(points, [2]float64{round(at), round(load)})
	}
	return points
}

// endOf returns how and when an attempt ended. The time is 0 if it may be running.
func endOf(in *Input, a *jobs.Attempt) (state int8, end jobs.Stamp) {
	end = in.Ended[a.ID]
	if a.Outcome != nil && a.Outcome.Ended != 0 {
		end = a.Outcome.Ended
	}
	switch o := a.Outcome; {
	case a.State.Open():
		return ranOpen, 0
	case a.State == jobs.AttemptLost:
		return ranLost, end
	case a.State == jobs.AttemptSuperseded:
		return ranSuperseded, end
	case a.State == jobs.AttemptCanceled:
		return ranCanceled, end
	case o != nil && o.OK():
		return ranSucceeded, end
	case o != nil && o.TimedOut:
		return ranTimedOut, end
	}
	return ranFailed, end
}
