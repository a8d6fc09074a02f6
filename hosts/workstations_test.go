package hosts

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// workstations is the provider of examples/workstations with stand-ins for the network and for the
// workstations.
type workstations struct {
	t        *testing.T
	provider *Provider
	dir      string // holds what the stand-ins read and write
}

func newWorkstations(t *testing.T) *workstations {
	example, err := filepath.Abs("../examples/workstations")
	polltest.Must(t, err)
	inventory, err := os.ReadFile(filepath.Join(example, "hosts.toml"))
	polltest.Must(t, err)
	text := strings.ReplaceAll(string(inventory), "examples/workstations", example)
	inv, warnings, err := Parse([]byte(text), "hosts.toml")
	if err != nil || len(warnings) > 0 || len(inv.Providers) != 1 {
		t.Fatalf("got %+v, %v, %v", inv, warnings, err)
	}
	w := &workstations{t, inv.Providers[0], t.TempDir()}
	bin := t.TempDir()
	for name, script := range map[string]string{
		"wakeonlan": `echo "$1" >> $DIR/woken`,
		// ssh runs the last argument, as if it were on the workstation.
		"ssh":  `[ ! -e $DIR/off ] || exit 255; while [ $# -gt 2 ]; do shift; done; HOST=$1 exec /bin/sh -c "$2"`,
		"who":  `[ ! -e $DIR/who ] || echo "ada tty2"`,
		"ps":   `[ ! -e $DIR/jobs ] || cat $DIR/jobs`,
		"sudo": `[ ! -e $DIR/refuse ] || exit 1; echo "$HOST: $*" >> $DIR/asleep`,
		"id":   "echo 1000",
	} {
		polltest.Must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	t.Setenv("DIR", w.dir)
	t.Setenv("DCS_WAKE", "")
	t.Setenv("DCS_WORKSTATIONS", filepath.Join(w.dir, "state"))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return w
}

func (w *workstations) create(n int) error {
	return w.provider.CreateInstance(context.Background(), "dcs-run", InstanceName("dcs-run", n))
}

func (w *workstations) terminate(n int) {
	w.t.Helper()
	polltest.Must(w.t, w.provider.TerminateInstance(context.Background(), "dcs-run", InstanceName("dcs-run", n)))
}

// checkUsed checks which workstations the instances with a prefix are: "name=address name=address".
func (w *workstations) checkUsed(prefix, want string) {
	w.t.Helper()
	list, err := w.provider.Instances(context.Background(), prefix)
	polltest.Must(w.t, err)
	var got []string
	for _, in := range list {
		got = append(got, in.Name+"="+strings.Join(in.Hosts[0].Addresses, ","))
	}
	if text := strings.Join(got, " "); text != want {
		w.t.Errorf("in use: %q, want %q", text, want)
	}
}

// checkFile checks what the stand-ins have written into a file.
func (w *workstations) checkFile(name, want string) {
	w.t.Helper()
	if b, _ := os.ReadFile(filepath.Join(w.dir, name)); string(b) != want {
		w.t.Errorf("%s: %q, want %q", name, b, want)
	}
}

// set creates a file that a stand-in looks for.
func (w *workstations) set(name, text string) {
	w.t.Helper()
	polltest.Must(w.t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600))
}

// TestWorkstationsAreWoken checks the example of a provider that wakes workstations: each instance
// gets another one, which is free again after it was put to sleep, and the one that was woken last
// is the last to be tried.
func TestWorkstationsAreWoken(t *testing.T) {
	w := newWorkstations(t)
	w.checkUsed("dcs-run", "")
	polltest.Must(t, w.create(1))
	polltest.Must(t, w.create(2))
	w.checkFile("woken", "00:00:5e:00:53:01\n00:00:5e:00:53:02\n")
	w.checkUsed("dcs-run", "dcs-run-1=ws01 dcs-run-2=ws02")
	w.checkUsed("dcs-other", "")
	if err := w.create(3); err == nil || !strings.Contains(err.Error(), "all workstations are in use") {
		t.Errorf("of two workstations, a third was woken: %v", err)
	}
	w.terminate(1)
	w.terminate(1) // it does not exist any more
	w.checkFile("asleep", "ws01: -n systemctl suspend\n")
	w.checkUsed("dcs-run", "dcs-run-2=ws02")
	polltest.Must(t, w.create(4))
	w.checkUsed("dcs-run", "dcs-run-4=ws01 dcs-run-2=ws02")
	w.terminate(2)
	w.terminate(4)
	polltest.Must(t, w.create(5))
	w.checkUsed("dcs-run", "dcs-run-5=ws02")
}

// TestWorkstationsInUseStayAwake checks that a workstation is not put to sleep while a person or
// another user needs it, and that one that cannot be put to sleep is free nevertheless.
func TestWorkstationsInUseStayAwake(t *testing.T) {
	for name, c := range map[string]struct{ file, text, asleep string }{
		"a person":              {"who", "", ""},
		"jobs of another user":  {"jobs", " 1000\n 1001\n", ""},
		"jobs of the same user": {"jobs", " 1000\n", "ws01: -n systemctl suspend\n"},
		"not reachable":         {"off", "", ""},
		"not allowed":           {"refuse", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkstations(t)
			w.set(c.file, c.text)
			polltest.Must(t, w.create(1))
			w.terminate(1)
			w.checkFile("asleep", c.asleep)
			w.checkUsed("dcs-run", "")
		})
	}
}
