package cli

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// pollInterval is the time between two looks at a run that somebody else dispatches.
const pollInterval = 500 * time.Millisecond

// maxTogether is the time within which equal events of hosts share a line.
const maxTogether = time.Minute

// eventFilter selects the records to show.
type eventFilter struct {
	jobs  jobs.Ranges // nil: all
	host  string      // "": all
	since jobs.Stamp
}

func (a *app) eventsCmd() *cobra.Command {
	var filter eventFilter
	var asJSON, follow bool
	cmd := &cobra.Command{
		Use:   "events [flags] [RUN]",
		Short: "Print the events of a run",
		Long: `Print the recorded events of a run, one per line, in the order in which they were recorded: its
dispatchers, attempts of jobs, changes of hosts, and requests of people. It works with and without a
dispatcher. ` + runHelp,
		Example: `dcs-tui events --host ws04 --since 2h
dcs-tui events --follow --json | jq -r .text`,
		Args: atMost(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.runEvents(args, &filter, asJSON, follow) },
	}
	fs := cmd.Flags()
	fs.Var(newFlag(&filter.jobs, "", parseJobsFlag), "job", "only events of `JOBS`, such as 17 or 3,9-17")
	fs.StringVar(&filter.host, "host", "", "only events of the host `NAME`, and of attempts there")
	fs.Var(newFlag(&filter.since, "", parseSince), "since",
		"only events since `TIME`: 2h for two hours ago, or a date such as 2026-11-20 or 2026-11-20T18:00")
	fs.BoolVar(&follow, "follow", false, "print new events, too, for as long as the run is dispatched")
	fs.BoolVar(&asJSON, "json", false, "print one JSON object per event")
	cmd.RegisterFlagCompletionFunc("job", cobra.NoFileCompletions)
	cmd.RegisterFlagCompletionFunc("since", cobra.NoFileCompletions)
	cmd.RegisterFlagCompletionFunc("host", completeRunHosts)
	return cmd
}

// parseSince parses a duration before now, or a date.
func parseSince(s string) (jobs.Stamp, error) {
	if d, err := jobs.ParseDuration(s); err == nil {
		return jobs.StampOf(time.Now().Add(-d)), nil
	}
	at, err := jobs.ParseDeadline(s)
	if err != nil {
		return 0, text.Errorf("%q is neither a duration, such as 2h, nor a date, such as 2026-11-20T18:00",
			text.Shorten(s))
	}
	if day, err := time.ParseInLocation("2006-01-02", s, time.Local); err == nil {
		at = day // a deadline is the end of the day
	}
	return jobs.StampOf(at), nil
}

// isShown reports whether a record is shown.
func (f *eventFilter) isShown(r *jobs.Record) bool {
	switch {
	case r.At < f.since, f.host != "" && r.Host != f.host:
		return false
	case f.jobs == nil:
		return true
	case r.Kind == jobs.KindAccepted:
		return slices.ContainsFunc(f.jobs, func(x jobs.Range) bool {
			return x.First < r.Job+jobs.ID(r.Count) && x.Last >= r.Job
		})
	}
	return r.Job != 0 && f.jobs.Has(r.Job)
}

func (a *app) runEvents(args []string, filter *eventFilter, asJSON, follow bool) error {
	run, err := a.openRun(args)
	if err != nil {
		return err
	}
	reader := journal.NewReader(run, journal.Follow(run).Packed())
	out := bufio.NewWriterSize(a.stdout, 64<<10)
	style := newConsole(a.stdout)
	shown, total := 0, jobs.ID(0)
	write := func(at time.Time, msg string) {
		// Flush returns the error.
		out.WriteString(style.Paint(dim, at.Local().Format("2006-01-02 15:04:05")) + "  " +
			style.PlainQuotes(text.Line(msg)) + "\n")
	}
	var held []runview.HostText // events of hosts without another event between them
	release := func() {
		for _, g := range runview.GroupHosts(held) {
			write(g.At, g.Sentence())
		}
		held = nil
	}
	show := func(epoch int, r *jobs.Record) {
		if reader.Report().Records == 1 && shown > 0 {
			a.warn("some of these events are not part of the run: " +
				"the dispatcher that took it over did not have them. All events follow again")
		}
		if r.Kind == jobs.KindAccepted {
			total = max(total, r.Job+jobs.ID(max(r.Count, 1))-1)
		}
		msg := runview.Text(r)
		if msg == "" || !filter.isShown(r) {
			return
		}
		shown++
		ofHost := r.Host != "" && r.Job == 0 && (r.Kind == jobs.KindEvent || r.Kind == jobs.KindMachine)
		if !ofHost || len(held) > 0 && r.At.Time().Sub(held[0].At) > maxTogether {
			release()
		}
		switch {
		case asJSON:
			writeJSON(out, style.tty, runview.EventOf(epoch, r)) // Flush returns the error
		case ofHost:
			held = append(held, runview.HostText{Host: r.Host, Text: msg, At: r.At.Time()})
		default:
			write(r.At.Time(), msg)
		}
	}
	for warned := 0; ; time.Sleep(pollInterval) {
		watchErr := reader.Watch(true)
		// Determined before the last records are read.
		last := !follow || watchErr == nil && !reader.IsDispatched()
		restarted, err := reader.Follow(live.Durable{}, show)
		release()
		if err == nil {
			err = out.Flush()
		}
		if errors.Is(err, syscall.EPIPE) {
			return nil // the reader has ended
		}
		if err != nil {
			return err
		}
		report := reader.Report()
		if restarted {
			warned = 0
		}
		a.warnAll(report.Warnings[warned:])
		warned = len(report.Warnings)
		if !last {
			continue
		}
		if n := report.Ignored; n > 0 {
			a.con.Line(fmt.Sprintf("left out %d bytes that dispatchers wrote after the run had been "+
				"taken over from them", n))
		}
		if last := filter.jobs.Last(); last > total {
			return noJobError(run, last, int(total))
		}
		if shown == 0 {
			a.con.Line("no events match")
		}
		if follow {
			a.con.Line("nobody dispatches the run now")
		}
		return nil
	}
}
