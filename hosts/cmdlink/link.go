// Package cmdlink is the Link over any command whose standard streams reach a
// process on the host: `docker exec -i box`, `kubectl exec -i pod --`,
// `srun --jobid=7`. The command gets three more arguments, /bin/sh, -c
// and our fixed text.
//
// It knows nothing of what the command does: a sign of life on another way than
// the stream itself does not exist here, and ending a stream ends the command
// on this side only.
package cmdlink

import (
	"context"
	"errors"
	"os/exec"

	"dcs-tui/hosts"
	"dcs-tui/hosts/locallink"
)

// Opener opens links through the command that the inventory gives a host.
type Opener struct{}

// Open checks that the command exists here and returns a link; the command
// itself runs first with Start.
func (Opener) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	fail := func(c hosts.Class, err error, advice string) (hosts.Link, error) {
		return nil, &hosts.Error{Host: h.Name, Class: c, Err: err, Advice: advice}
	}
	if err := ctx.Err(); err != nil {
		return fail(hosts.Unreachable, err, "")
	}
	if len(h.Command) == 0 {
		return fail(hosts.Misconfigured, errors.New("no command to reach it with"), `set link = "COMMAND …" in the inventory`)
	}
	if _, err := exec.LookPath(h.Command[0]); err != nil {
		return fail(hosts.Misconfigured, err, "is "+h.Command[0]+" installed here and in PATH?")
	}
	return locallink.New(h.Name, h.Command...), nil
}
