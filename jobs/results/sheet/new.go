package sheet

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// elapsed is the column that people call time.
const elapsed = "elapsed_seconds"

// Input is what a table of jobs is made of.
type Input struct {
	Jobs    []results.Result
	Params  []string   // parameters that have a column though none of Jobs may have them
	Names   []string   // of the figures
	Figures [][]string // of each job its figures, in the order of Names; nil: none
}

// New makes the table: a row a job in the order of the jobs file. Of two columns with
// one name the parameter keeps it; a figure is then called result.NAME, and a fact
// dcs.NAME.
func New(in Input) *Sheet {
	s := &Sheet{unit: "job", rows: make([]int32, len(in.Jobs))}
	for i := range s.rows {
		s.rows[i] = int32(i)
	}
	slices.SortStableFunc(s.rows, func(a, b int32) int { return cmp.Compare(in.Jobs[a].Job, in.Jobs[b].Job) })
	s.job = func(i int) jobs.ID { return in.Jobs[i].Job }
	s.solved = func(i int) bool { return in.Jobs[i].State == jobs.Succeeded }

	params := paramColumns(in.Jobs, in.Params)
	var taken []string
	for _, c := range params {
		taken = append(taken, c.Name)
	}
	var figures []Column
	for k, name := range in.Names {
		name = unique(taken, name, "result.")
		taken = append(taken, name)
		figures = append(figures, Column{Name: name, Role: Figure, value: figure(in.Figures, k)})
	}
	add := func(show bool, columns ...Column) {
		for _, c := range columns {
			if show {
				s.shown = append(s.shown, len(s.Columns))
			}
			s.Columns = append(s.Columns, c)
		}
	}
	for i, c := range facts(in.Jobs) {
		c.Name = unique(taken, c.Name, "dcs.")
		taken = append(taken, c.Name)
		switch i {
		case 1: // after the number come what was asked and what came of it
			add(len(params) == 0, c)
			add(true, params...)
			add(true, figures...)
		default:
			add(i == 0 || i >= 2 && i <= 4, c)
		}
	}
	return s
}

// paramColumns are the known parameters and those of the jobs, in the order in which
// these first have them.
func paramColumns(list []results.Result, known []string) []Column {
	where := map[string]int{}
	names := slices.Clone(known)
	for i, name := range names {
		where[name] = i
	}
	for i := range list {
		for k, p := range list[i].Params {
			if k < len(names) && names[k] == p.Name {
				continue // as nearly always
			}
			if _, ok := where[p.Name]; !ok {
				where[p.Name] = len(names)
				names = append(names, p.Name)
			}
		}
	}
	var columns []Column
	for at, name := range names {
		columns = append(columns, Column{Name: name, Role: Param, value: func(i int) Value {
			ps := list[i].Params
			if at < len(ps) && ps[at].Name == name {
				return ValueOf(ps[at].Value)
			}
			for _, p := range ps {
				if p.Name == name {
					return ValueOf(p.Value)
				}
			}
			return Value{}
		}})
	}
	return columns
}

func figure(figures [][]string, k int) func(i int) Value {
	return func(i int) Value {
		if i >= len(figures) || k >= len(figures[i]) {
			return Value{}
		}
		return ValueOf(figures[i][k])
	}
}

// facts are what is known of every job, named as in `results --json`. The first five
// are shown unless others are asked for; name only where there are no parameters.
func facts(list []results.Result) []Column {
	at := func(name string, unit Unit, f func(r *results.Result) Value) Column {
		return Column{Name: name, Unit: unit, value: func(i int) Value { return f(&list[i]) }}
	}
	number := func(name string, unit Unit, f func(r *results.Result) Value) Column {
		c := at(name, unit, f)
		c.number = true
		return c
	}
	outcome := func(name string, unit Unit, f func(o *jobs.Outcome) Value) Column {
		return number(name, unit, func(r *results.Result) Value {
			if o := r.Outcome; o != nil && o.Started != 0 {
				return f(o)
			}
			return Value{}
		})
	}
	return []Column{
		number("job", None, func(r *results.Result) Value { return countValue(int64(r.Job)) }),
		at("name", None, func(r *results.Result) Value { return TextValue(cmp.Or(r.Name, r.Command)) }),
		at("state", None, func(r *results.Result) Value { return TextValue(r.State.String()) }),
		outcome(elapsed, Seconds, func(o *jobs.Outcome) Value { return NumberValue(o.Elapsed().Seconds()) }),
		at("host", None, func(r *results.Result) Value { return TextValue(r.Host) }),
		at("queue", None, func(r *results.Result) Value { return TextValue(r.Queue) }),
		number("exit", None, func(r *results.Result) Value {
			if code, ok := r.Exit(); ok {
				return countValue(int64(code))
			}
			return Value{}
		}),
		at("signal", None, func(r *results.Result) Value { return TextValue(r.Signal()) }),
		at("cause", None, func(r *results.Result) Value {
			if r.State == jobs.Succeeded || !r.State.Terminal() {
				return Value{}
			}
			return TextValue(results.Cause(r.State, r.Reason, r.Outcome))
		}),
		number("attempts", None, func(r *results.Result) Value { return countValue(int64(r.Attempts)) }),
		number("try", None, func(r *results.Result) Value {
			if r.State == jobs.Succeeded || r.State == jobs.Running {
				return countValue(int64(r.Failures) + 1)
			}
			return countValue(int64(r.Failures))
		}),
		number("failures", None, func(r *results.Result) Value { return countValue(int64(r.Failures)) }),
		number("slot", None, func(r *results.Result) Value {
			if r.Slot == 0 {
				return Value{}
			}
			return countValue(int64(r.Slot))
		}),
		at("started", None, func(r *results.Result) Value { return timeValue(r.Started()) }),
		at("ended", None, func(r *results.Result) Value { return timeValue(r.Ended()) }),
		outcome("cpu_seconds", Seconds, func(o *jobs.Outcome) Value { return NumberValue(o.CPU.Seconds()) }),
		outcome("max_rss_bytes", Bytes, func(o *jobs.Outcome) Value { return countValue(o.MaxRSSBytes) }),
		number("round", None, func(r *results.Result) Value { return countValue(int64(r.Round)) }),
		at("command", None, func(r *results.Result) Value { return TextValue(r.Command) }),
		at("stdout", None, func(r *results.Result) Value { return TextValue(r.Stdout) }),
		at("stderr", None, func(r *results.Result) Value { return TextValue(r.Stderr) }),
		at("reason", None, func(r *results.Result) Value { return TextValue(r.Reason) }),
	}
}

func timeValue(t jobs.Stamp) Value {
	if t == 0 {
		return Value{}
	}
	return TextValue(t.Time().UTC().Format(time.RFC3339))
}
