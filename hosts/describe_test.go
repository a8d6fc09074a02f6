package hosts

import "testing"

func TestHostTexts(t *testing.T) {
	h := &Host{Name: "a", Addresses: []string{"a.lan", "10.0.0.1"}, User: "me", Port: 2222, Jump: []string{"gate"},
		Slots: SlotRule{Less: 2}, Tags: []string{"big"}, Weight: 1, MaxLoad: 3, MinMemFree: 1 << 30, Link: "ssh",
		Quiet: []Quiet{{From: 22 * 3600e9, To: 6*3600e9 + 30*60e9}}}
	if got, want := h.Way(), "ssh me@a.lan, 10.0.0.1 port 2222 through gate"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := h.Limits(), "cores-2 slots, tags big, does not yield, load at most 3, 1G of memory left free, quiet 22:00-06:30"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
