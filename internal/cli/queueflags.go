package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
)

// queueFlags are what is said of queues on the command line; it goes into their jobs,
// as if it stood in the files, and so is kept with them.
type queueFlags struct {
	share    perQueue
	priority perQueue
}

func (q *queueFlags) flags(fs *pflag.FlagSet) {
	q.share, q.priority = perQueue{low: 1, high: jobs.MaxShare}, perQueue{low: math.MinInt32, high: math.MaxInt32}
	fs.Var(&q.share, "share", "QUEUE=N: the queue gets slot time in proportion to N (1); a file of several is a queue of its name")
	fs.Var(&q.priority, "queue-priority", "QUEUE=N: queues with a smaller N go first, whatever the shares are (0)")
}

func (q *queueFlags) empty() bool { return len(q.share.of)+len(q.priority.of) == 0 }

// apply gives the jobs of queues what was said of these.
func (q *queueFlags) apply(specs []*jobs.Spec) {
	if q.empty() {
		return
	}
	changeOptions(specs, func(o *jobs.Options) {
		if n, ok := q.share.of[o.Queue]; ok {
			o.Share = n
		}
		if n, ok := q.priority.of[o.Queue]; ok {
			o.QueuePriority = &n
		}
	})
}

// applying gives what next yields what was said of its queue.
func (q *queueFlags) applying(next func() (*jobs.Spec, error)) func() (*jobs.Spec, error) {
	if q.empty() {
		return next
	}
	return func() (*jobs.Spec, error) {
		s, err := next()
		if err == nil {
			q.apply([]*jobs.Spec{s})
		}
		return s, err
	}
}

// check refuses queues that there are not.
func (q *queueFlags) check(queues []string) error {
	for _, f := range []struct {
		flag string
		v    *perQueue
	}{{"share", &q.share}, {"queue-priority", &q.priority}} {
		for _, name := range f.v.names {
			if !slices.Contains(queues, name) {
				p := exit.Usagef("--%s %s: no job is in a queue of that name", f.flag, console.Shorten(name))
				if near := jobs.Nearest(name, queues); near != "" {
					return p.WithAdvice("did you mean %s?", console.ShellWord(near))
				}
				return p.WithAdvice("the queues are: %s", queueList(queues))
			}
		}
	}
	return nil
}

// queueList names queues for people.
func queueList(queues []string) string {
	var names []string
	for _, q := range queues {
		if q == "" {
			q = "one without a name"
		}
		names = append(names, console.CleanLine(q))
	}
	if len(names) > 10 {
		names = append(names[:10], fmt.Sprintf("and %d more", len(names)-10))
	}
	return strings.Join(names, ", ")
}

// perQueue is a flag QUEUE=N that may be given several times.
type perQueue struct {
	low, high int
	names     []string
	of        map[string]int
}

func (v *perQueue) String() string {
	var parts []string
	for _, name := range v.names {
		parts = append(parts, name+"="+strconv.Itoa(v.of[name]))
	}
	return strings.Join(parts, ",")
}
func (v *perQueue) Type() string { return "queue=n" }
func (v *perQueue) Set(s string) error {
	i := strings.LastIndexByte(s, '=')
	if i < 0 {
		return exit.Usagef("%s: QUEUE=N is wanted", console.Shorten(s))
	}
	n, err := strconv.Atoi(s[i+1:])
	if err != nil || n < v.low || n > v.high {
		return exit.Usagef("%q is not a whole number from %d to %d", console.Shorten(s[i+1:]), v.low, v.high)
	}
	if v.of == nil {
		v.of = map[string]int{}
	}
	if _, twice := v.of[s[:i]]; !twice {
		v.names = append(v.names, s[:i])
	}
	v.of[s[:i]] = n
	return nil
}
