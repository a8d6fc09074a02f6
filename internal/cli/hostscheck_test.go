package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/check"
	"dcs-tui/jobs/runview"
)

// docs/formats.md lists each field of hosts check --json, and no other.
func TestHostsCheckJSONIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "`hosts check --json`\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for i, word := range strings.Split(cells[1], "`") {
				if i%2 == 1 {
					documented = append(documented, word)
				}
			}
		}
	}
	b, _ := json.Marshal(checkedOf(&check.Result{Host: &hosts.Host{Name: "a"}, Hello: new(hosts.Hello), Beat: new(hosts.Beat)}))
	fields := map[string]any{}
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if !slices.Contains(documented, name) {
			t.Errorf("docs/formats.md does not document %s", name)
		}
	}
	if len(documented) != len(fields) {
		t.Errorf("documented are %q, printed is %s", documented, b)
	}
}

// Hosts that run nothing and of which the same was said share a line of status; the others
// have their own.
func TestHostLinesAreGrouped(t *testing.T) {
	at := time.Date(2026, 3, 14, 15, 4, 0, 0, time.UTC)
	host := func(name, last string, running, ended int) hostStatus {
		return hostStatus{Name: name, HostCount: runview.HostCount{Running: running, Ended: ended}, Last: last, LastAt: &at}
	}
	got := hostLines([]hostStatus{
		host("a1", "a1: 10.0.0.1:22 refuses connections", 0, 2), host("a2", "a2: 10.0.0.2:22 refuses connections", 0, 3),
		host("a3", "a3: 10.0.0.3:22 refuses connections", 1, 0), host("b1", "b1 is up", 0, 0), host("b2", "b2 is up", 0, 0),
	})
	want := []string{"hosts", "a[1-2] (2 hosts)", "a3 ", "b1 ", "b2 "}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("%q has no %q", got[i], w)
		}
	}
	if !strings.Contains(got[1], "5 ended") || !strings.Contains(got[1], "HOST:22 refuses connections") || !strings.Contains(got[2], "10.0.0.3:22") {
		t.Errorf("%q", got)
	}
}

// The names of an ssh configuration become hosts: without patterns, once for each machine,
// in the order of the files.
func TestSSHHosts(t *testing.T) {
	dir := t.TempDir()
	more := filepath.Join(dir, "more")
	os.WriteFile(more, []byte("host = \"n1\" n2 # n9\n  Port 2201\nHost n2\nHostName 10.9.0.2\n"), 0o600)
	file := filepath.Join(dir, "config")
	os.WriteFile(file, []byte("# Host no\nHost ws01 ws02 *.lab !x\n  HostName 10.9.0.1\nInclude "+more+"\nHost ?\nHOST git@odd\n"), 0o600)
	list, err := sshHosts(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range list {
		got = append(got, f.Name+" "+f.bad)
	}
	if want := []string{"ws01 ", "ws02 the same machine as ws01", "n1 ", "n2 "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
