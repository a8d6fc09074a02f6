package results

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// elapsedColumn is the name of the column that people call time.
const elapsedColumn = "elapsed_seconds"

// TableInput holds the data of a table of jobs.
type TableInput struct {
	Jobs   []Result
	Rows   *Rows    // the jobs, if it is not nil
	Params []string // parameters that have a column even if none of Jobs has them
	// AreNamed shows the names of the jobs also if there are parameters, which do not tell them apart.
	AreNamed bool
	Names    []string   // of the metrics
	Metrics  [][]string // of each job its metrics, in the order of Names; nil: none
	// Suggest returns a declaration of metric k that finds the number in a text, or ""; nil: none.
	Suggest func(k int, text string) string
	// Elsewhere is the number of further jobs of the run that are not over. They are missing in all
	// numbers that are computed over jobs.
	Elsewhere int
}

// NewTable returns a table with one row per job, in the order of the jobs file. If two columns
// have the same name, the parameter keeps it, a metric becomes result.NAME, and a fact becomes
// dcs.NAME.
func NewTable(in TableInput) *Table {
	list := cmp.Or(in.Rows, RowsOf(in.Jobs))
	s := &Table{unit: "job", rows: make([]int32, list.Len()), numElsewhere: in.Elsewhere}
	for i := range s.rows {
		s.rows[i] = int32(i)
	}
	slices.SortStableFunc(s.rows, func(a, b int32) int { return cmp.Compare(list.Job(int(a)), list.Job(int(b))) })
	s.job = list.Job
	s.over = func(i int) bool { return list.State(i).Terminal() }
	s.solved = func(i int) bool { return list.State(i) == jobs.Succeeded }

	params := paramColumns(list, in.Params)
	taken := namesOf(params)
	var metrics []Column
	for k, name := range in.Names {
		name = uniqueName(taken, name, "result.")
		taken = append(taken, name)
		c := Column{Name: name, Role: Metric}
		c.value, c.unit = metric(in.Metrics, k)
		if in.Suggest != nil {
			c.suggest = func(text string) string { return in.Suggest(k, text) }
		}
		metrics = append(metrics, c)
	}
	add := func(show bool, columns ...Column) {
		for _, c := range columns {
			if show {
				s.shown = append(s.shown, len(s.Columns))
			}
			s.Columns = append(s.Columns, c)
		}
	}
	for i, c := range factColumns(list) {
		c.Name = uniqueName(taken, c.Name, "dcs.")
		taken = append(taken, c.Name)
		switch i {
		case 1: // the number comes first, then the parameters and the metrics
			add(in.AreNamed || len(params) == 0, c)
			add(true, params...)
			add(true, metrics...)
		default:
			add(i == 0 || i >= 2 && i <= 4, c)
		}
	}
	return s
}

// paramColumns returns the known parameters, followed by those of the jobs in the order in which
// they first occur.
func paramColumns(list *Rows, known []string) []Column {
	var names jobs.Numbering[string]
	for _, name := range known {
		names.Number(name)
	}
	for i := range list.list { // all parameters of a run are known
		for k, p := range list.list[i].Params {
			if k >= len(names.Values) || names.Values[k] != p.Name { // in the usual case it is known
				names.Number(p.Name)
			}
		}
	}
	var columns []Column
	for at, name := range names.Values {
		columns = append(columns, Column{Name: name, Role: Param, value: func(i int) query.Value {
			ps := list.Facts(i).Params
			if at < len(ps) && ps[at].Name == name {
				return query.ValueOf(ps[at].Value)
			}
			for _, p := range ps {
				if p.Name == name {
					return query.ValueOf(p.Value)
				}
			}
			return query.Value{}
		}})
	}
	return columns
}

// factColumns returns the columns that every job has, named as in `results --json`. The first five
// are shown unless others are requested; name only if parameters do not tell the jobs apart.
func factColumns(list *Rows) []Column {
	fact := func(name string, t query.Type, f func(r *Result) query.Value) Column {
		return Column{Name: name, Type: t, value: func(i int) query.Value { return f(list.Facts(i)) }}
	}
	text := func(name string, f func(r *Result) string) Column {
		return fact(name, query.TextType, func(r *Result) query.Value { return query.TextValue(f(r)) })
	}
	path := func(name string, f func(r *Result) string) Column {
		return Column{Name: name, Type: query.TextType,
			value: func(i int) query.Value { return query.TextValue(f(list.Result(i))) }}
	}
	count := func(name string, f func(r *Result) int) Column {
		return fact(name, query.NumberType, func(r *Result) query.Value { return query.NumberValue(float64(f(r))) })
	}
	ran := func(name string, t query.Type, f func(o *jobs.Outcome) float64) Column {
		return fact(name, t, func(r *Result) query.Value {
			if o := r.Outcome; o != nil && o.Started != 0 {
				return query.NumberValue(f(o))
			}
			return query.Value{}
		})
	}
	point := func(name string, f func(r *Result) jobs.Stamp) Column {
		return fact(name, query.TimeType, func(r *Result) query.Value {
			if t := f(r); t != 0 {
				return query.TextValue(t.Time().UTC().Format(time.RFC3339))
			}
			return query.Value{}
		})
	}
	cause := text("cause", func(r *Result) string {
		if r.State == jobs.Succeeded || !r.State.Terminal() {
			return ""
		}
		return Cause(r.State, r.Reason, r.Outcome)
	})
	cause.kind = func(i int) string {
		if r := list.Facts(i); r.Outcome != nil && (r.State == jobs.Failed || r.State == jobs.TimedOut) {
			return FailureKind(r.Outcome)
		}
		return ""
	}
	return []Column{
		count("job", func(r *Result) int { return int(r.Job) }),
		text("name", func(r *Result) string { return cmp.Or(r.Name, r.Command) }),
		text("state", func(r *Result) string { return r.State.String() }),
		ran(elapsedColumn, query.DurationType, func(o *jobs.Outcome) float64 { return o.Elapsed().Seconds() }),
		text("host", func(r *Result) string { return r.Host }),
		text("queue", func(r *Result) string { return r.Queue }),
		fact("exit", query.NumberType, func(r *Result) query.Value {
			if code, ok := r.Exit(); ok {
				return query.NumberValue(float64(code))
			}
			return query.Value{}
		}),
		text("signal", func(r *Result) string { return r.Signal() }),
		cause,
		count("attempts", func(r *Result) int { return int(r.Attempts) }),
		count("try", func(r *Result) int {
			if r.State == jobs.Succeeded || r.State == jobs.Running {
				return int(r.Failures) + 1
			}
			return int(r.Failures)
		}),
		count("failures", func(r *Result) int { return int(r.Failures) }),
		fact("slot", query.NumberType, func(r *Result) query.Value {
			if r.Slot == 0 {
				return query.Value{}
			}
			return query.NumberValue(float64(r.Slot))
		}),
		point("started", func(r *Result) jobs.Stamp { return r.Started() }),
		point("ended", func(r *Result) jobs.Stamp { return r.Ended() }),
		ran("cpu_seconds", query.DurationType, func(o *jobs.Outcome) float64 { return o.CPU.Seconds() }),
		ran("max_rss_bytes", query.SizeType, func(o *jobs.Outcome) float64 { return float64(o.MaxRSSBytes) }),
		count("round", func(r *Result) int { return int(r.Round) }),
		text("command", func(r *Result) string { return r.Command }),
		path("stdout", func(r *Result) string { return r.Stdout }),
		path("stderr", func(r *Result) string { return r.Stderr }),
		text("reason", func(r *Result) string { return r.Reason }),
	}
}
