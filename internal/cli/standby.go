package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// findStandbys finds the hosts of --standby-on. A name of the inventory is that host; any
// other is reached as one of --host is.
func (f *runFlags) findStandbys(inv *loadedInventory) error {
	if f.StandbyOn == "" {
		return nil
	}
	named, _, err := hosts.ParseLogins([]byte(strings.ReplaceAll(f.StandbyOn, ",", "\n")), "--standby-on")
	if err != nil {
		return exit.Usagef("%w", err)
	}
	for i, h := range named.Hosts {
		if known := inv.Find(h.Name); known != nil {
			named.Hosts[i] = known
		}
		if named.Hosts[i].Link == "local" {
			return exit.Usagef("--standby-on %s: that is this machine; a standby dispatcher must run on another one", console.CleanLine(h.Name))
		}
	}
	f.standbys = named.Hosts
	return nil
}

// checkStandby checks the flags of resume --standby.
func (f *runFlags) checkStandby() error {
	switch {
	case f.standby && f.force:
		return exit.Usagef("--standby and --force exclude each other: the one waits for the dispatcher's death, the other does not")
	case f.background && !f.standby:
		return exit.Usagef("--background needs --standby").WithAdvice("on a terminal, resume dispatches in the background anyhow")
	}
	f.noTUI = f.noTUI || f.standby
	return nil
}

// checkJobLog drops a --joblog that the dispatcher writes elsewhere than on this machine, which
// would make a takeover fail. The run directory has a job log anyhow.
func (a *app) checkJobLog(f *runFlags) {
	if f.joblog == "" {
		return
	}
	if _, err := os.Stat(filepath.Dir(f.joblog)); err != nil {
		a.warn("the job log of --joblog is not continued here: %v", err)
		f.joblog = ""
	}
}

// inBackground starts this command line in the background, and returns when that process
// watches.
func (a *app) inBackground() error {
	p, dir, err := a.startHere()
	if err == nil && dir == "" { // it has said why, if it could
		a.code, _ = codeOf(p)
	}
	return err
}

// standBy waits until the run needs a dispatcher, and takes it over. It returns nil, and sets
// the exit code, if the run ends first.
func (a *app) standBy(r *rundir.Run, f *runFlags) (*run.Owned, error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	o, err := run.StandBy(ctx, r, run.StandbyOptions{
		Elsewhere: f.background, Notify: a.message,
		Watching: func() {
			a.begun(r)
			a.starter = nil
		},
	})
	switch {
	case errors.Is(err, run.ErrOver):
		reader := journal.NewReader(r, journal.Follow(r).Lean())
		if _, err := reader.Poll(nil); err != nil {
			return nil, exit.Usagef("%w", err)
		}
		return nil, a.nobodyDispatches(r, reader.Table())
	case ctx.Err() != nil:
		a.con.Line("the standby ends; the run goes on without it")
		a.code = exit.Cancelled
		return nil, nil
	case err != nil:
		return nil, err
	}
	for _, w := range o.Warnings {
		a.warn("%s", w)
	}
	return o, nil
}
