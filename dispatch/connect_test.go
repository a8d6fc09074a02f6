package dispatch

import (
	"testing"
	"time"

	"dcs-tui/hosts"
)

// TestOpenHasTheSettingsOfTheHost checks that the first message to a host has what the inventory
// says about the host, and what the run says about all hosts.
func TestOpenHasTheSettingsOfTheHost(t *testing.T) {
	h := &hosts.Host{Name: "n1", Slots: hosts.SlotRule{Less: 2}, Nice: 7, Pin: true, WorkDir: "/w", ShareDir: "/s",
		Owner: hosts.OwnerPause, OwnerIdle: time.Hour, Heartbeat: time.Minute, Setup: "one", Send: []string{"code"}}
	o := openMessage(hosts.Open{Run: "r1", Setup: "two"}, h)
	if o.Run != "r1" || o.Host != "n1" || o.Less != 2 || o.Nice != 7 || !o.Pin || o.WorkDir != "/w" ||
		o.ShareDir != "/s" ||
		o.Owner != hosts.OwnerPause || o.OwnerIdle != time.Hour || o.Heartbeat != time.Minute ||
		o.Setup != hosts.JoinSetups("", "one", "two") || !o.Sends {
		t.Errorf("got %+v", o)
	}
}
