package runview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results/sheet"
)

// vocabulary is what comparisons may name beside what is known of every job.
type vocabulary struct {
	params  []string // of all jobs
	had     map[string]bool
	figures []string // declared ones: the table has them, the list of jobs has not
}

// cells finds a column by its name, as the table of results understands it.
func (v vocabulary) cells(name string) (sheet.Cells[candidate], error) {
	none := sheet.New(sheet.Input{Params: v.params})
	at, err := none.Column(name)
	if value := onlyOfRows[strings.ToLower(name)]; err != nil && value != nil {
		return sheet.Cells[candidate]{Column: sheet.Column{Name: strings.ToLower(name), Role: sheet.Fact}, Value: value}, nil
	}
	if err != nil {
		return sheet.Cells[candidate]{}, v.unknown(name, none)
	}
	c := sheet.Cells[candidate]{Column: none.Columns[at]}
	if c.Column.Role == sheet.Param {
		c.Value = paramOf(c.Column.Name)
	} else if c.Value = factsOfRows[strings.TrimPrefix(c.Column.Name, "dcs.")]; c.Value == nil {
		return c, fmt.Errorf("the list of jobs cannot be filtered by %s; the Results view can", c.Column.Name)
	}
	return c, nil
}

func (v vocabulary) unknown(name string, none *sheet.Sheet) error {
	if slices.Contains(v.figures, strings.TrimPrefix(name, "result.")) {
		return fmt.Errorf("%s is found in outputs: the Results view can be filtered by it", jobs.Clean(name, 40))
	}
	names := slices.Clone(v.params)
	for _, c := range none.Columns {
		names = append(names, c.Name)
	}
	if near := jobs.Nearest(name, names); near != "" {
		return fmt.Errorf("no job has a parameter %s; did you mean %s? Quotes make it text", jobs.Clean(name, 40), near)
	}
	return fmt.Errorf("no job has a parameter %s; quotes make it text", jobs.Clean(name, 40))
}

// learn takes in the parameters of a job.
func (v *vocabulary) learn(s *jobs.Spec) {
	for k := range s.Params {
		name := s.Params[k].Name
		if k < len(v.params) && v.params[k] == name || v.had[name] { // the first, as nearly always
			continue
		}
		if v.had == nil {
			v.had = map[string]bool{}
		}
		v.had[name] = true
		v.params = append(v.params, name)
	}
}

// paramOf is the value of a parameter.
func paramOf(name string) func(candidate) sheet.Value {
	return func(c candidate) sheet.Value {
		for _, p := range c.l.spec(c.id).Params {
			if p.Name == name {
				return sheet.ValueOf(p.Value)
			}
		}
		return sheet.Value{}
	}
}

// factsOfRows are the facts that a row holds.
var factsOfRows = map[string]func(candidate) sheet.Value{
	"job":   func(c candidate) sheet.Value { return sheet.NumberValue(float64(c.id)) },
	"state": func(c candidate) sheet.Value { return sheet.ValueOf(statesOfPhases[c.r.phase]) },
	"name": func(c candidate) sheet.Value {
		return sheet.TextValue(c.l.spec(c.id).Title())
	},
	"command": func(c candidate) sheet.Value { return sheet.TextValue(c.l.spec(c.id).Command) },
	"host":    func(c candidate) sheet.Value { return sheet.TextValue(c.l.names[c.r.host]) },
	"queue":   func(c candidate) sheet.Value { return sheet.TextValue(c.l.options[c.r.options].Queue) },
	"exit": func(c candidate) sheet.Value {
		switch x := c.r.exit; {
		case x == 0:
			return sheet.Value{}
		case x >= bySignal:
			return sheet.NumberValue(float64(128 + x - bySignal)) // as in the table
		default:
			return sheet.NumberValue(float64(x - 1))
		}
	},
	"signal": func(c candidate) sheet.Value {
		if c.r.exit < bySignal {
			return sheet.Value{}
		}
		return sheet.TextValue(jobs.SignalName(int(c.r.exit - bySignal)))
	},
	"elapsed_seconds": func(c candidate) sheet.Value {
		if !c.r.phase.Terminal() || c.r.exit == 0 && c.r.took == 0 {
			return sheet.Value{}
		}
		return sheet.NumberValue(float64(c.r.took))
	},
	"max_rss_bytes": func(c candidate) sheet.Value {
		if c.r.mem == 0 {
			return sheet.Value{}
		}
		return sheet.NumberValue(float64(c.r.mem) * 1024)
	},
	"cpu_seconds": func(c candidate) sheet.Value {
		if !c.r.phase.Terminal() || c.r.exit == 0 && c.r.took == 0 {
			return sheet.Value{}
		}
		return sheet.NumberValue(time.Duration(c.r.when).Seconds())
	},
	"failures": func(c candidate) sheet.Value { return sheet.NumberValue(float64(c.r.failures)) },
	"try":      func(c candidate) sheet.Value { return sheet.NumberValue(float64(c.r.try())) },
}

// onlyOfRows holds the columns that the list of jobs has in addition to facts.
var onlyOfRows = map[string]func(candidate) sheet.Value{
	"prio": func(c candidate) sheet.Value { return sheet.NumberValue(float64(c.r.priority)) },
	"progress": func(c candidate) sheet.Value {
		if c.r.progress == noProgress {
			return sheet.Value{}
		}
		return sheet.NumberValue(float64(c.r.progress) / 10_000)
	},
	"parameters": func(c candidate) sheet.Value {
		var b strings.Builder
		for i, p := range c.l.spec(c.id).Params {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(p.Name + "=" + p.Value)
		}
		return sheet.TextValue(b.String())
	},
}

// statesOfPhases are the states of jobs, as the journal has them.
var statesOfPhases = [Phases]string{
	Ending: jobs.Running.String(), Running: jobs.Running.String(), Away: jobs.Running.String(), Handed: jobs.Running.String(),
	Retry: jobs.Queued.String(), Queued: jobs.Queued.String(), Waits: jobs.Queued.String(),
	Succeeded: jobs.Succeeded.String(), Failed: jobs.Failed.String(), TimedOut: jobs.TimedOut.String(),
	Cancelled: jobs.Cancelled.String(), Skipped: jobs.Skipped.String(),
}
