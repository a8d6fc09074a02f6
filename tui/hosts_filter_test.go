package tui

import "testing"

// What a person types after / in Hosts finds hosts; no letter of it is a command (d would
// drain one). The host that a command names is found whatever the filter is.
func TestFilterHosts(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	press(t, m, "2", "/", "w", "s", "0", "3")
	shows(t, m, "filter hosts: /ws03", "ws03")
	hides(t, m, "> ws01", "  ws02")
	press(t, m, "enter")
	if h := m.hosts.host(m); h == nil || h.Name != "ws03" {
		t.Fatalf("under the cursor is %+v", h)
	}
	shows(t, m, "/ws03  sort:inventory")
	press(t, m, ":")
	typeText(t, m, "stop ws01")
	press(t, m, "enter")
	shows(t, m, "Stop ws01 now?")
	press(t, m, "esc", "/")
	typeText(t, m, "no such")
	press(t, m, "enter")
	shows(t, m, "no host matches no such: esc shows all")
	press(t, m, "esc")
	hides(t, m, "no host matches")
	press(t, m, "/", "x", "esc")
	shows(t, m, "ws01")
}

// Every column of the list of hosts can be compared by its heading, as in the list of
// jobs.
func TestHostsAreFilteredByTheirColumns(t *testing.T) {
	m := newScreen(t, sample(), 160, 48)
	for _, c := range m.hostColumns(200) {
		if c.head == "5 MIN" { // it has no value to compare
			continue
		}
		if _, err := m.hostFilter(c.head + "='x'"); err != nil {
			t.Errorf("%s: %v", c.head, err)
		}
	}
	for filter, want := range map[string]int{"HOST=ws03": 1, "host=ws0* state=up": 8, "State=draining": 1, "ok>=1007": 5, "Mem<1G": 0, "disk>1G load>1": 12,
		"link<1s": 12, "ws1 not ws12": 2, "lost or draining": 2, "": 12} {
		m.hosts.filter = filter
		if got := len(m.hosts.order(m)); got != want {
			t.Errorf("%s: %d hosts, want %d", filter, got, want)
		}
	}
	m.hosts.filter = ""
	press(t, m, "2", "2", "/")
	typeText(t, m, "lod>3")
	press(t, m, "enter")
	shows(t, m, `there is no column "lod" (did you mean "load"?)`)
}

// In Failed / goes on in the list of jobs, with what failed.
func TestFilterFailed(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	press(t, m, "3", "/")
	typeText(t, m, "C=1")
	press(t, m, "enter")
	if m.tab != tabJobs || m.jobs.filter != "(state=fail or state=timeout) C=1" {
		t.Errorf("tab %v, filter %q", m.tab, m.jobs.filter)
	}
}
