package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dcs-tui/dispatch/control"
	"dcs-tui/hosts"
	"dcs-tui/hosts/sshlink"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// attachFlags are the options of attach.
type attachFlags struct {
	via       string
	sshConfig string
	acceptNew bool
	screen    screenOptions
}

func (a *app) attachCmd() *cobra.Command {
	var f attachFlags
	cmd := &cobra.Command{
		Use:     "attach [flags] [RUN]",
		GroupID: groupRun,
		Short:   "The screen for a run that goes on elsewhere, or is over",
		Long: `Show the screen of a run whose dispatcher is alive: in the background, in another
terminal, or on another machine. Any number of screens may look at a run and act on it.

A dispatcher on another machine is reached through ssh, with your ssh configuration;
--via names that machine when its own name is none that ssh knows. Of a run that nobody
dispatches the screen shows what the run directory has, and can resume it.

` + runHelp + `

Leaving the screen leaves the run alone unless you ask it to end or be cancelled: exit
code 4 when jobs are left then, else as run.`,
		Example: `dcs-tui attach
dcs-tui attach sweep-20260314-1502
dcs-tui attach --via ws03.lab.example.org /nfs/ada/dcs-runs/sweep`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.runAttach(args, &f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.via, "via", "", "reach the dispatcher's machine as ssh HOST (its own name)")
	sshFlags(fs, &f.sshConfig, &f.acceptNew)
	f.screen.flags(fs)
	return cmd
}

func (a *app) runAttach(args []string, f *attachFlags) error {
	run, err := a.openRun(args)
	if err != nil {
		return err
	}
	ref := console.ShellWord(console.CleanLine(standing.Ref(run)))
	if plainTerminal() || !term.IsTerminal(int(a.stdout.Fd())) {
		return exit.Usagef("this terminal cannot show the screen").
			WithAdvice("dcs-tui status %s shows how the run stands, dcs-tui events --follow %s what happens", ref, ref)
	}
	keys, err := a.keyboard()
	if err != nil {
		return exit.Usagef("there is no terminal to type on: %w", err).
			WithAdvice("dcs-tui status %s shows how the run stands, dcs-tui events --follow %s what happens", ref, ref)
	}
	defer keys.Close()
	follow := a.follow(run, a.reachAnywhere(run, f))
	defer follow.Close()
	if err := follow.first(); err != nil {
		var p *exit.Problem
		if errors.As(err, &p) {
			return err
		}
		return exit.Usagef("%w", err)
	}
	return a.screen(follow, keys, f.screen)
}

// reachHere connects to a dispatcher on this machine.
func reachHere(run *rundir.Run) reacher {
	return func(ctx context.Context, owner *journal.Owner) (*control.Client, error) {
		return control.Dial(ctx, owner.Address, run.UID(), version())
	}
}

// farWithin bounds reaching a dispatcher on another machine.
const farWithin = 45 * time.Second

// reachAnywhere connects to a dispatcher on this machine or another one.
func (a *app) reachAnywhere(run *rundir.Run, f *attachFlags) reacher {
	here := reachHere(run)
	var opener *sshlink.Opener // keeps passphrases for when the connection is lost
	return func(ctx context.Context, owner *journal.Owner) (*control.Client, error) {
		if owner.Life() == journal.Alive {
			return here(ctx, owner)
		}
		if name, err := os.Hostname(); err == nil && name == owner.Host && f.via == "" {
			client, err := here(ctx, owner) // another container of this machine, perhaps
			if !errors.Is(err, runview.ErrGone) {
				return client, err
			}
		}
		name := owner.Host
		if f.via != "" {
			name = f.via
		}
		h := &hosts.Host{Name: name, Link: "ssh", Addresses: []string{name}}
		ctx, cancel := context.WithTimeout(ctx, farWithin)
		defer cancel()
		if opener == nil {
			o := &options{SSHConfig: f.sshConfig, AcceptNew: f.acceptNew}
			if err := a.checkSSH(o, []*hosts.Host{h}); err != nil {
				return nil, err
			}
			opener = a.sshOpener(o).(*sshlink.Opener)
		}
		conn, err := opener.DialSocket(ctx, h, owner.Address)
		if err != nil {
			return nil, farError(run, owner, f.sshConfig, name, err)
		}
		client, err := control.NewFarClient(ctx, conn, run.UID(), version(), owner.Token)
		if err != nil {
			return nil, farError(run, owner, f.sshConfig, name, err)
		}
		return client, nil
	}
}

// farError says what to type instead.
func farError(run *rundir.Run, owner *journal.Owner, config, name string, err error) error {
	// Two shells read it: the one here, and the one there.
	there := "dcs-tui attach " + console.ShellWord(console.CleanLine(run.Dir))
	if strings.Contains(there, "'") {
		there = console.ShellWord(there)
	}
	advice := "instead: " + sshTo(config, name, "-t") + " " + there
	if name == owner.Host {
		advice += "; if ssh knows that machine by another name: dcs-tui attach --via NAME " + console.ShellWord(console.CleanLine(standing.Ref(run)))
	}
	return exit.Usagef("%s cannot be reached from here: %w", owner, err).WithAdvice("%s", advice)
}
