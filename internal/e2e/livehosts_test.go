//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// hostsFile writes hosts.toml. Each entry is the name of a host and the number of its server.
func (l *lab) hostsFile(entries ...string) string {
	text := ""
	for _, e := range entries {
		var name string
		var i int
		if _, err := fmt.Sscanf(e, "%s %d", &name, &i); err != nil {
			l.t.Fatal(err)
		}
		text += l.servers[i].Entry(name, 2)
	}
	return l.writeFile("hosts.toml", text)
}

// TestInventoryChangesDuringARun changes hosts.toml during a run: one host is added, one is
// removed, and one gets another address with another machine. It checks that running jobs finish
// where they run, the others continue, nothing is lost, and nothing runs twice (B5, D7).
func TestInventoryChangesDuringARun(t *testing.T) {
	polltest.Long(t)
	var servers []hosttest.Options
	for i := range 4 {
		servers = append(servers, hosttest.Options{Env: map[string]string{"SERVER": fmt.Sprint(i)}})
	}
	l := newLab(t, 4, servers...)
	inventory := l.hostsFile("ws1 0", "ws2 1")
	for _, name := range []string{"ran", "on", "gates"} {
		l.mkdir(name)
	}
	// Each job records where it runs and waits until it may end.
	const n = 24
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "echo $DCS_ATTEMPT >> %[1]s/ran/$DCS_JOB_ID; touch %[1]s/on/$DCS_HOST.$SERVER.$DCS_JOB_ID; "+
			"while [ -e %[1]s/ran -a ! -e %[1]s/gates/$DCS_HOST.$SERVER -a ! -e %[1]s/gates/all ]; "+
			"do sleep 0.05; done\n", l.dir)
	}
	args := []string{"run", "--no-tui", "--json", "--ssh-config", l.servers[0].ConfigFile, "--hosts", inventory,
		"--run-dir", l.path("run"), l.writeFile("jobs.txt", b.String())}
	p := l.start(args...)
	on := func(place string, jobs int) {
		t.Helper()
		l.until(fmt.Sprintf("%d jobs run on %s", jobs, place),
			func() bool { return l.numFiles("on/"+place+".*") >= jobs })
	}
	said := func(text string) {
		t.Helper()
		l.until(text, func() bool { return strings.Contains(p.stderr.String(), text) })
	}
	open := func(place string) { l.writeFile("gates/"+place, "") }
	on("ws1.0", 2)
	on("ws2.1", 2)

	l.hostsFile("ws1 0", "ws2 1", "ws3 2") // adds ws1
	on("ws3.2", 2)

	// Removes ws1: its running jobs finish, and nothing else starts there.
	l.hostsFile("ws2 1", "ws3 2")
	said("is removed from the hosts of the run")
	open("ws1.0")
	said("has left the run")
	if got := l.numFiles("on/ws1.*"); got != 2 {
		t.Errorf("%d jobs ran on ws1, want 2: it was removed while they ran", got)
	}

	l.hostsFile("ws2 3", "ws3 2") // moves ws2, whose jobs are still at the old address
	said("the new address of ws2 is used when its attempts at the old one have ended")
	open("ws2.1")
	on("ws2.3", 2)
	if got := l.numFiles("on/ws2.1.*"); got != 2 {
		t.Errorf("%d jobs ran on ws2 at its old address, want 2", got)
	}

	open("all")
	p.mustSucceed()
	l.checkRun(l.path("run"), n, p.stdout.String())
}
