package runview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
)

// candidate is a row that a filter is applied to.
type candidate struct {
	l  *list
	id uint32
	r  *row
}

// filter is a query over the rows of a list. nil matches every job.
type filter func(candidate) bool

// maxFilter bounds the text of a filter, in bytes.
const maxFilter = 4096

func parseSearch(s string) (*query.Query, error) {
	if len(s) > maxFilter {
		return nil, fmt.Errorf("a filter has at most %d characters", maxFilter)
	}
	return query.ParseSearch(s)
}

// parseFilter reads a filter over the list of jobs, which have parameters of these names.
func parseFilter(s string, known vocabulary) (filter, error) {
	q, err := parseSearch(s)
	if err != nil || q == nil {
		return nil, err
	}
	return known.compile(q)
}

// vocabulary holds the names that filters may use besides the facts of jobs.
type vocabulary struct {
	params  jobs.Numbering[string] // of all jobs
	metrics []string               // declared metrics: the table has them, the list of jobs does not
}

func (v *vocabulary) addParams(s *jobs.Spec) {
	for k, p := range s.Params() {
		if known := v.params.Values; k >= len(known) || known[k] != p.Name { // usually it is there
			v.params.Number(p.Name)
		}
	}
}

// compile makes a filter over the list of jobs.
func (v vocabulary) compile(q *query.Query) (filter, error) {
	return query.Compile(q, query.Fields[candidate](v.field), searchJobs)
}

// field finds a field by its name, like the table of results.
func (v vocabulary) field(name string) (*query.Field[candidate], error) {
	if f := onlyOfRows[strings.ToLower(name)]; f != nil && !slices.Contains(v.params.Values, name) {
		return f, nil
	}
	none := results.NewTable(results.TableInput{Params: v.params.Values})
	at, err := none.Column(name)
	if err != nil && slices.Contains(v.metrics, strings.TrimPrefix(name, "result.")) {
		return nil, fmt.Errorf("%s is found in outputs: the Results view can be filtered by it", text.Clean(name, 40))
	}
	if err != nil {
		return nil, fmt.Errorf("%w; quotes make it a text", err)
	}
	c := none.Columns[at]
	if c.Role == results.Param {
		return &query.Field[candidate]{Name: c.Name, Value: paramOf(c.Name)}, nil
	}
	fact := strings.TrimPrefix(c.Name, "dcs.")
	f := &query.Field[candidate]{Name: c.Name, Type: c.Type, Fact: true, Value: factsOfRows[fact]}
	switch {
	case f.Value == nil:
		return nil, fmt.Errorf("the list of jobs cannot be filtered by %s; the Results view can", c.Name)
	case fact == "state":
		f.Word = phasesMeant
	case fact == "signal":
		f.Word = results.SignalWord(func(c candidate) string { return f.Value(c).Text })
	case fact == "exit":
		f.Check = results.CheckExit
	}
	return f, nil
}

// searchJobs finds a text in the name, the command, and the parameters of jobs.
func searchJobs(text string) func(candidate) bool {
	has, pair := query.Contains(text), strings.Contains(text, "=")
	return func(c candidate) bool {
		s := c.l.spec(c.id)
		inParam := func(p jobs.Param) bool { return has(p.Value) || has(p.Name) || pair && has(p.Name+"="+p.Value) }
		return has(s.Command) || s.Name != "" && has(s.Name) || slices.ContainsFunc(s.Params(), inParam)
	}
}

// phasesMeant finds jobs in the phases that a word stands for: one phase of the screen, or all
// phases of some states.
func phasesMeant(word string) (func(candidate) bool, error) {
	var set [Phases]bool
	var known []string
	for p := range Phases {
		set[p] = strings.EqualFold(word, p.String())
		if set[p] {
			return func(c candidate) bool { return set[c.r.phase] }, nil
		}
		known = append(known, p.String())
	}
	states, err := results.ParseStates(word)
	if err != nil {
		return nil, query.Unknown("state", word, append(known, "open", "done", "bad", "running", "queued", "succeeded",
			"failed", "timed_out", "canceled", "skipped"))
	}
	for p := range Phases {
		set[p] = slices.Contains(states, stateOf[p])
	}
	return func(c candidate) bool { return set[c.r.phase] }, nil
}

var stateOf = [Phases]jobs.JobState{
	Ending: jobs.Running, Running: jobs.Running, Suspended: jobs.Running, Away: jobs.Running, Sent: jobs.Running,
	Retry: jobs.Queued, Queued: jobs.Queued, Waits: jobs.Queued,
	Succeeded: jobs.Succeeded, Failed: jobs.Failed, TimedOut: jobs.TimedOut, Canceled: jobs.Canceled,
	Skipped: jobs.Skipped,
}

// paramOf returns the field of the values of a parameter.
func paramOf(name string) func(candidate) query.Value {
	return func(c candidate) query.Value {
		for _, p := range c.l.spec(c.id).Params() {
			if p.Name == name {
				return query.ValueOf(p.Value)
			}
		}
		return query.Value{}
	}
}

// optional returns a number if there is one.
func optional(known bool, n float64) query.Value {
	if !known {
		return query.Value{}
	}
	return query.NumberValue(n)
}

// factsOfRows are the facts of results that a row holds, too.
var factsOfRows = map[string]func(candidate) query.Value{
	"job":     func(c candidate) query.Value { return query.NumberValue(float64(c.id)) },
	"state":   func(c candidate) query.Value { return query.TextValue(stateOf[c.r.phase].String()) },
	"name":    func(c candidate) query.Value { return query.TextValue(c.l.spec(c.id).Title()) },
	"command": func(c candidate) query.Value { return query.TextValue(c.l.spec(c.id).Command) },
	"host":    func(c candidate) query.Value { return query.TextValue(c.l.names.Values[c.r.host]) },
	"queue":   func(c candidate) query.Value { return query.TextValue(c.l.options.Values[c.r.options].Queue) },
	"exit": func(c candidate) query.Value {
		if c.r.exit >= bySignal {
			// As in the table of results.
			return query.NumberValue(float64(128 + c.r.exit - bySignal))
		}
		return optional(c.r.exit > 0, float64(c.r.exit)-1)
	},
	"signal": func(c candidate) query.Value {
		if c.r.exit < bySignal {
			return query.Value{}
		}
		return query.TextValue(jobs.SignalName(int(c.r.exit - bySignal)))
	},
	"elapsed_seconds": func(c candidate) query.Value { return optional(c.r.hasRun(), float64(c.r.took)) },
	"max_rss_bytes":   func(c candidate) query.Value { return optional(c.r.mem > 0, float64(c.r.mem)*1024) },
	"cpu_seconds": func(c candidate) query.Value {
		return optional(c.r.hasRun(), time.Duration(c.r.when).Seconds())
	},
	"failures": func(c candidate) query.Value { return query.NumberValue(float64(c.r.failures)) },
	"try":      func(c candidate) query.Value { return query.NumberValue(float64(c.r.tryNumber())) },
}

// onlyOfRows are the fields of the list of jobs that results do not have.
var onlyOfRows = map[string]*query.Field[candidate]{
	"prio": {Name: "prio", Type: query.NumberType, Fact: true,
		Value: func(c candidate) query.Value { return query.NumberValue(float64(c.r.priority)) }},
	"progress": {Name: "progress", Type: query.NumberType, Fact: true, Value: func(c candidate) query.Value {
		return optional(c.r.progress != noProgress, float64(c.r.progress)/10_000)
	}},
	"straggler": {Name: "straggler", Type: query.TextType, Fact: true, Value: func(c candidate) query.Value {
		if c.r.flags&straggler == 0 {
			return query.Value{}
		}
		return query.TextValue("yes")
	}},
	"tags": {Name: "tags", Type: query.TextType, Fact: true, Value: func(c candidate) query.Value {
		return query.TextValue(strings.Join(c.l.options.Values[c.r.options].Tags, " "))
	}},
	"parameters": {Name: "parameters", Type: query.TextType, Fact: true, Value: func(c candidate) query.Value {
		var b strings.Builder
		for i, p := range c.l.spec(c.id).Params() {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(p.Name + "=" + p.Value)
		}
		return query.TextValue(b.String())
	}},
}

// hasRun reports whether a job is over and its last attempt has run.
func (r *row) hasRun() bool { return r.phase.Terminal() && (r.exit != 0 || r.took != 0) }

// tryNumber returns the number of the current or last try, or 0 if there was none.
func (r *row) tryNumber() int {
	if r.phase == Retry || r.phase <= Sent || r.phase == Succeeded {
		return int(r.failures) + 1
	}
	return int(r.failures)
}
