package hosts

import (
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestAdd: a host that is added on request has the defaults of the inventory and its options,
// and the text that is kept of it gives the same host.
func TestAdd(t *testing.T) {
	inv, _, err := Parse([]byte("[defaults]\nslots = 7\nnice = 3\n[[host]]\nname = \"a\"\n"), "hosts.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, options string
		want          Host // what it is about
		wrong         string
	}{
		{"b", "", Host{Slots: SlotRule{Fixed: 7}, Nice: 3, Addresses: []string{"b"}}, ""},
		{"b", "slots=4 address=10.0.0.5 tags=gpu,big", Host{Slots: SlotRule{Fixed: 4}, Nice: 3, Addresses: []string{"10.0.0.5"}, Tags: []string{"big", "gpu"}}, ""},
		{"b", "  slots=cores-1   nice=0 ", Host{Slots: SlotRule{Less: 1}, Addresses: []string{"b"}}, ""},
		{"b", "yield=false weight=1.5 tags=one", Host{Slots: SlotRule{Fixed: 7}, Nice: 3, Addresses: []string{"b"}, Tags: []string{"one"}}, ""},
		{"b", "slot=4", Host{}, `unknown key "slot"; did you mean "slots"?`},
		{"b", "slots", Host{}, `"slots" is not an option of a host, such as slots=4 or tags=gpu`},
		{"b", "name=c", Host{}, `"name=c" is not an option of a host`},
		{"b", "slots=-1", Host{}, "slots"},
		{"b[1-2]", "", Host{}, "stands for 2 hosts; add them one by one"},
		{"b/c", "", Host{}, "b/c"},
	} {
		h, err := inv.Add(c.name, c.options)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s %s: error %v, want %q", c.name, c.options, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.name, c.options, err)
			continue
		}
		if h.Slots != c.want.Slots || h.Nice != c.want.Nice || strings.Join(h.Addresses, " ") != strings.Join(c.want.Addresses, " ") || strings.Join(h.Tags, " ") != strings.Join(c.want.Tags, " ") {
			t.Errorf("%s %s: %+v, want %+v", c.name, c.options, *h, c.want)
		}
		again, _, err := Parse([]byte(inv.Text+AddedText(c.name, c.options)), "hosts.toml")
		if err != nil {
			t.Errorf("%s %s: its text: %v", c.name, c.options, err)
		} else if kept := again.Find("b"); kept == nil || !kept.Same(h) {
			t.Errorf("%s %s: its text gives %+v, want %+v", c.name, c.options, kept, *h)
		}
	}
}

// TestWith: the set is the file without what people removed, then what they added, then the
// hosts of providers, each name once.
func TestWith(t *testing.T) {
	inv := &Inventory{Hosts: []*Host{{Name: "a"}, {Name: "b"}}}
	asked := map[string]jobs.HostRequest{"b": {Removed: true}, "d": {Options: "slots=2"}, "c": {}, "a": {Options: "slots=9"}, "bad": {Options: "slot=2"}, "p2": {Removed: true}}
	list, added, errs := inv.With(asked, []*Host{{Name: "p1"}, {Name: "p2"}, {Name: "a"}})
	names := func(list []*Host) (all string) {
		for _, h := range list {
			all += h.Name + " "
		}
		return all
	}
	if got := names(list); got != "a c d p1 " {
		t.Errorf("hosts %q, want a c d p1", got)
	}
	if got := names(added); got != "c d " {
		t.Errorf("added %q, want c d", got)
	}
	if list[0] != inv.Hosts[0] {
		t.Error("a host of the file is not taken from the file, because people added it before")
	}
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "the host bad, which was added on request, is not used: ") {
		t.Errorf("errors %v, want one about bad", errs)
	}
}

// TestTOML: hosts can be appended to a list of logins, and to no file at all.
func TestTOML(t *testing.T) {
	logins, _, err := Parse([]byte("# ours\n4/me@ws1:2222\nws[2-3]\n"), "nodes")
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Parse([]byte(logins.TOML()+AddedText("ws4", "slots=2")), "nodes")
	if err != nil {
		t.Fatalf("%v\n%s", err, logins.TOML())
	}
	if len(again.Hosts) != 4 {
		t.Fatalf("%d hosts, want 4", len(again.Hosts))
	}
	for i, h := range logins.Hosts {
		if !h.Same(again.Hosts[i]) {
			t.Errorf("%+v, want %+v", *again.Hosts[i], *h)
		}
	}
	alone, _, err := Parse([]byte(Local().TOML()), "hosts.toml")
	if err != nil || len(alone.Hosts) != 1 || alone.Hosts[0].Link != "local" {
		t.Errorf("this machine: %v, %+v", err, alone)
	}
	text := "[[host]]\nname = \"a\"\n"
	if inv, _, err := Parse([]byte(text), "hosts.toml"); err != nil || inv.TOML() != text {
		t.Errorf("the text of a file is not kept: %v", err)
	}
}
