package runview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// TestHostsWithOneProblemAreOneGroup checks that hosts with the same problem form one group,
// whatever their names, addresses, and keys are.
func TestHostsWithOneProblemAreOneGroup(t *testing.T) {
	var texts []HostText
	for i := 1; i <= 300; i++ {
		name := fmt.Sprintf("ws%03d", i)
		texts = append(texts,
			HostText{
				Host: name,
				Text: fmt.Sprintf("%s: 10.0.%d.%d:22 refuses connections "+
					"(does sshd run there, on port 22?)", name, i/100, i%100),
				At: time.Unix(int64(i), 0),
			},
			HostText{Host: "n" + name, Text: fmt.Sprintf("n%s: no machine is called n%s.lab.example.org "+
				"(check its address for a typing error)", name, name)},
			HostText{Host: "k" + name, Text: fmt.Sprintf("k%s: its host key SHA256:abc%d+/= is not known", name, i)},
			HostText{Host: "u" + name, Text: "u" + name + " is up"},
		)
	}
	for _, name := range []string{"a1", "a2"} { // the name is the address
		texts = append(texts, HostText{Host: name, Text: name + ":22 does not answer"})
	}
	texts = append(texts, HostText{Host: "here", Text: "here: the disk is full"},
		HostText{Host: "port", Text: "port: 10.0.0.1:23 refuses connections (does sshd run there, on port 23?)"})
	want := []string{
		"ws[001-300] (300 hosts): <host>:22 refuses connections (does sshd run there, on port 22?)",
		"nws[001-300] (300 hosts): no machine is called <host> (check its address for a typing error)",
		"kws[001-300] (300 hosts): its host key SHA256:… is not known",
		"each of uws[001-300] (300 hosts) is up",
		"a[1-2] (2 hosts): <host>:22 does not answer",
		"here: the disk is full",
		"port: 10.0.0.1:23 refuses connections (does sshd run there, on port 23?)",
	}
	got := GroupHosts(texts)
	if len(got) != len(want) {
		t.Fatalf("%d groups, want %d: %+v", len(got), len(want), got)
	}
	for i := range got {
		if s := got[i].Sentence(); s != want[i] {
			t.Errorf("%q, want %q", s, want[i])
		}
	}
	if at := got[0].At; !at.Equal(time.Unix(1, 0)) {
		t.Errorf("the first group is of %v", at)
	}
}

// TestGroupHasEachHostOnce checks that a message that a host repeats does not count the host again,
// and that groups keep the order of the messages of each host.
func TestGroupHasEachHostOnce(t *testing.T) {
	for _, c := range []struct{ texts, want string }{
		{"a is up,a is up,a is up", "a is up"},
		{"n1 is up,n2 is up,n1 is up", "each of n[1-2] (2 hosts) is up"},
		{"n1 is up,n1 is lost,n1 is up", "n1 is up; n1 is lost; n1 is up"},
		{"n1 is up,n2 is up,n1 is lost,n2 is lost,n1 is up,n2 is up,n2 is up",
			"each of n[1-2] (2 hosts) is up; each of n[1-2] (2 hosts) is lost; each of n[1-2] (2 hosts) is up"},
		{"n1: 10.0.0.1:22 is closed,n1: 10.0.0.2:22 is closed", "n1: 10.0.0.1:22 is closed"},
	} {
		t.Run(c.texts, func(t *testing.T) {
			var texts []HostText
			for text := range strings.SplitSeq(c.texts, ",") {
				texts = append(texts, HostText{Host: text[:strings.IndexAny(text, " :")], Text: text})
			}
			var got []string
			for _, g := range GroupHosts(texts) {
				got = append(got, g.Sentence())
			}
			if s := strings.Join(got, "; "); s != c.want {
				t.Errorf("%s: got %q, want %q", c.texts, s, c.want)
			}
		})
	}
}

// TestUselessHostsAreGrouped checks that a summary lists all unusable hosts, in one line per cause.
func TestUselessHostsAreGrouped(t *testing.T) {
	hostEvents := map[string]HostEvent{}
	for i := 1; i <= 30; i++ {
		name := fmt.Sprintf("ws%02d", i)
		hostEvents[name] = HostEvent{Text: name + ": 10.0.0." + fmt.Sprint(i) + ":22 refuses connections"}
	}
	got := UselessHosts(new(jobs.Table), hostEvents)
	if len(got) != 1 || got[0] != "ws[01-30] (30 hosts) ran nothing: <host>:22 refuses connections" {
		t.Errorf("UselessHosts: got %q, want 30 hosts in one line", got)
	}
}
