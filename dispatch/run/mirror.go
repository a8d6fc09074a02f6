package run

import (
	"context"
	"slices"

	"dcs-tui/hosts"
	"dcs-tui/hosts/mirror"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// mirroredJournal is the journal of a dispatcher that may have a mirror of its run directory.
type mirroredJournal struct {
	*journal.Journal
	mirror *mirror.Primary
}

// Fenced also asks the mirror, because the run directory does not show a takeover there.
func (j mirroredJournal) Fenced() (epoch int, err error) {
	if epoch, err = j.Journal.Fenced(); err != nil || epoch > 0 {
		return epoch, err
	}
	return j.mirror.Check()
}

// pollsOf returns the way to the voters of a run.
func pollsOf(dir *rundir.Run, connector hosts.Connector, list func() []*hosts.Host) mirror.Polls {
	return mirror.Polls{Connect: connector.Connect, Hosts: list,
		Open: hosts.Open{Version: hosts.ProtocolVersion, Run: dir.UID(), RunName: dir.Name(), Nonce: dir.Nonce}}
}

// newMirror returns the Primary of this run, which has no mirror yet.
func (r *Run) newMirror() *mirror.Primary {
	p := mirror.New(mirror.Options{
		Run: r.dir, Journal: r.journal, Polls: pollsOf(r.dir, r.connector, r.inventory.Hosts), Env: r.secretEnv(),
		Say: r.printText, Warn: r.printWarning,
		Show: func(standby string) { r.publisher.SetStandby(standby) },
	})
	r.journal.Confirm = p.Confirm
	return p
}

// ownMirror makes sure that no standby takes the run over from a mirror of an earlier dispatcher.
func (r *Run) ownMirror(ctx context.Context) error {
	p := pollsOf(r.dir, r.connector, r.inventory.Hosts)
	err := mirror.Recover(ctx, r.dir, r.journal.Epoch(), &p, func(name string) *hosts.Host {
		for _, h := range slices.Concat(r.opts.Standby, r.inventory.Hosts()) {
			if h.Name == name {
				return h
			}
		}
		return nil
	})
	if err != nil {
		return text.Errorf("the run %s cannot be continued here: %w", r.dir.Name(), err)
	}
	return nil
}

// secretEnv returns the variables whose values are not in run.toml.
func (r *Run) secretEnv() (env []jobs.EnvVar) {
	for _, ref := range r.dir.Settings.EnvNames {
		i := slices.IndexFunc(r.opts.Env, func(v jobs.EnvVar) bool { return v.Name == ref.Name })
		if !ref.Stored && i >= 0 {
			env = append(env, r.opts.Env[i])
		}
	}
	return env
}

// checkNotMirror returns an error if dir is a mirror that nobody has taken over.
func checkNotMirror(dir *rundir.Run) error {
	d, err := mirror.Read(dir)
	if err != nil || d == nil || !d.Mirror || d.State == mirror.Taken {
		return err
	}
	return text.Errorf("%s is a mirror of the run, which is dispatched in %s", text.Path(dir.Dir), text.Line(d.From)).
		WithAdvice("dcs-tui resume --standby %s takes it over when the dispatcher is silent and enough hosts agree",
			text.ShellWord(text.Path(dir.Dir)))
}
