package hosts

import (
	"slices"
	"strings"
	"testing"
)

// An inventory may be a plain list in the syntax of GNU parallel's --sshloginfile.
func TestParseLogins(t *testing.T) {
	inv, _, err := Parse([]byte("# our room\nws01\n 8/ada@ws02:2222 # big\n\n4/ws[03-04]\n1/:\n"), "nodes")
	if err != nil {
		t.Fatal(err)
	}
	local := Local().Hosts[0].Name
	want := []Host{
		{Name: "ws01", Addresses: []string{"ws01"}, Slots: SlotRule{Less: 1}, Link: "ssh", Line: 2},
		{Name: "ws02", Addresses: []string{"ws02"}, Slots: SlotRule{Fixed: 8}, User: "ada", Port: 2222, Link: "ssh", Line: 3},
		{Name: "ws03", Addresses: []string{"ws03"}, Slots: SlotRule{Fixed: 4}, Link: "ssh", Line: 5},
		{Name: "ws04", Addresses: []string{"ws04"}, Slots: SlotRule{Fixed: 4}, Link: "ssh", Line: 5},
		{Name: local, Slots: SlotRule{Fixed: 1}, Link: "local", Line: 6},
	}
	if len(inv.Hosts) != len(want) {
		t.Fatalf("%d hosts, want %d", len(inv.Hosts), len(want))
	}
	for i, w := range want {
		h := inv.Hosts[i]
		if h.Name != w.Name || !slices.Equal(h.Addresses, w.Addresses) || h.Slots != w.Slots || h.User != w.User || h.Port != w.Port ||
			h.Link != w.Link || h.Line != w.Line || !h.Yield || h.Nice != 10 || h.GPUs != -1 || h.Weight != 1 {
			t.Errorf("host %d = %+v\nwant %+v with the defaults", i+1, *h, w)
		}
	}
}

func TestParseLoginsRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"ws01\nssh -p 22 ws02\n", `f:2: "ssh -p 22 ws02" has blanks: a login is [SLOTS/][USER@]HOST[:PORT]; options of ssh belong in ~/.ssh/config`},
		{"0/ws01\n", `f:1: "0/ws01" does not begin with a number of slots from 1 to 4096: a login is [SLOTS/][USER@]HOST[:PORT]`},
		{"ws01\n2/ws01\n", "f:2: the host ws01 is there twice, first on line 1"},
		{"-oProxyCommand\n", `f:1: the host name "-oProxyCommand" starts with "-"; start it with a letter or digit`},
		{"-x@ws01\n", `f:1: "-x@ws01" has no user before the @`},
		{"ws01:0\n", `f:1: "0" is not a port from 1 to 65535`},
	} {
		if _, _, err := Parse([]byte(c.text), "f"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Parse(%q) = %v, want %s", c.text, err, c.want)
		}
	}
}
