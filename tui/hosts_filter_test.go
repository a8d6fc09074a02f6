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

// In Failed / goes on in the list of jobs, with what failed.
func TestFilterFailed(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	press(t, m, "3", "/")
	typeText(t, m, "C=1")
	press(t, m, "enter")
	if m.tab != tabJobs || m.jobs.filter != "state:fail,timeout C=1" {
		t.Errorf("tab %v, filter %q", m.tab, m.jobs.filter)
	}
}
