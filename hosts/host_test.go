package hosts

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestHostChangeKnowsEveryField checks that every changed field of a host is reported, including
// fields that are added to Host later.
func TestHostChangeKnowsEveryField(t *testing.T) {
	for i := range reflect.TypeFor[Host]().NumField() {
		old, now := new(Host), new(Host)
		field := reflect.ValueOf(now).Elem().Field(i)
		name := reflect.TypeFor[Host]().Field(i).Name
		switch v := field.Addr().Interface().(type) {
		case *string:
			*v = "x"
		case *[]string:
			*v = []string{"x"}
		case *int:
			*v = 7
		case *[]int:
			*v = []int{7}
		case *int64:
			*v = 7
		case *float64:
			*v = 7
		case *bool:
			*v = true
		case *time.Duration:
			*v = 7
		case *[]Quiet:
			*v = []Quiet{{From: 1}}
		case *[]KeptPart:
			*v = []KeptPart{{Queue: "x"}}
		case *SlotRule:
			v.Fixed = 7
		default:
			t.Fatalf("%s: of a type that this test does not know", name)
		}
		said := hostChange(old, now) != ""
		// Shells follows from Command.
		notSaid := name == "Name" || name == "File" || name == "Line" || name == "Shells"
		if said == notSaid {
			t.Errorf("%s: said %v", name, said)
		}
	}
}

// TestInventoryChangesAreGrouped checks that a change of a whole lab is reported in one short line.
func TestInventoryChangesAreGrouped(t *testing.T) {
	lab := func(n, slots int, names ...string) (list []*Host) {
		for i := range n {
			h := &Host{Name: "ws" + string(rune('a'+i)), Slots: SlotRule{Fixed: slots}}
			h.Addresses = []string{h.Name}
			list = append(list, h)
		}
		for _, name := range names {
			list = append(list, &Host{Name: name})
		}
		return list
	}
	for _, c := range []struct {
		old, now []*Host
		want     string
	}{
		{lab(3, 4), lab(3, 4), ""},
		{
			lab(20, 4, "old"),
			lab(20, 8, "new"),
			"added new; removed old; wsa, wsb, wsc, wsd and 16 more: slots 8 (was 4)",
		},
		{lab(2, 4), lab(5, 4), "added wsc, wsd, wse"},
		{lab(0, 0, "a", "b", "c", "d", "e"), nil, "removed a, b, c, d, e"},
		{lab(0, 0, "a"), []*Host{{Name: "a", Tags: []string{"gpu", "x"}, Slots: SlotRule{Less: 1}}},
			"a: slots cores-1 (was cores), tags gpu x (was none)"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := Changes(c.old, c.now); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	var now []*Host
	for i, h := range lab(20, 4) {
		h.Slots.Fixed = 10 + i
		now = append(now, h)
	}
	if got := Changes(lab(20, 4), now); !strings.HasSuffix(got, "; 16 other hosts changed") || len(got) > 200 {
		t.Errorf("Changes: got %q, want at most 200 bytes that count the others", got)
	}
}

// TestRouteAndLimitsAreDescribed checks the texts about a host that `hosts list` shows.
func TestRouteAndLimitsAreDescribed(t *testing.T) {
	h := &Host{
		Name:       "a",
		Addresses:  []string{"a.lan", "10.0.0.1"},
		User:       "me",
		Port:       2222,
		Jump:       []string{"gate"},
		Slots:      SlotRule{Less: 2},
		Tags:       []string{"big"},
		Pin:        true,
		Weight:     1,
		MaxLoad:    3,
		MinMemFree: 1 << 30,
		Link:       "ssh",
		Quiet:      []Quiet{{From: 22 * 3600e9, To: 6*3600e9 + 30*60e9}},
	}
	if got, want := h.Route(), "ssh me@a.lan, 10.0.0.1 port 2222 through gate"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := h.Limits(), "cores-2 slots, tags big, a job is bound to cores, does not yield, load below 3, "+
		"1G of memory left free, quiet 22:00-06:30"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

type namedOpener struct{ err error }

func (o namedOpener) Open(context.Context, *Host) (Link, error) { return nil, o.err }

// TestEachHostGetsItsOpener checks that each host gets the opener of its kind of link. An unknown
// kind is Misconfigured, and the error lists the known kinds.
func TestEachHostGetsItsOpener(t *testing.T) {
	ssh, local := errors.New("ssh"), errors.New("local")
	r := Router{"ssh": namedOpener{ssh}, "local": namedOpener{local}}
	for link, want := range map[string]error{"ssh": ssh, "local": local} {
		if _, err := r.Open(t.Context(), &Host{Name: "melon4", Link: link}); err != want {
			t.Errorf("%s: got %v", link, err)
		}
	}
	_, err := r.Open(t.Context(), &Host{Name: "melon4", Link: "carrier pigeon"})
	if ClassOf(err) != Misconfigured {
		t.Errorf("class %v of %v", ClassOf(err), err)
	}
	if got, want := err.Error(), `melon4: no link of the kind "carrier pigeon" `+
		`(this program knows: local, ssh)`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestExitErrorText checks that the error of a command distinguishes exit codes and signals.
func TestExitErrorText(t *testing.T) {
	for want, err := range map[string]ExitError{"exit code 3": {Code: 3},
		"ended by SIGKILL": {Code: -1, Signal: "SIGKILL"}} {
		t.Run(want, func(t *testing.T) {
			if got := err.Error(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestProgramsThatJoinArgumentsAreRecognized checks that a program that joins its arguments, such
// as ssh, is recognized by its name at any position in the command. A host of that name does not
// count.
func TestProgramsThatJoinArgumentsAreRecognized(t *testing.T) {
	for link, want := range map[string]int{
		`"ssh {name}"`: 1,
		`"/usr/bin/ssh -J gate -o BatchMode=yes {name}"`:     1,
		`"ssh -o 'ProxyCommand=ssh -W %h:%p gate' {name}"`:   1,
		`["env", "KRB5CCNAME=/tmp/k", "ssh", "{name}"]`:      1,
		`"ssh gate ssh {name}"`:                              2,
		`"ssh {name} docker exec -i box"`:                    1,
		`"gcloud compute ssh {name} --"`:                     1,
		`"docker exec -i {name}"`:                            0,
		`"kubectl exec -i {name} --"`:                        0,
		`"srun --jobid=7"`:                                   0,
		`"sshpass-like {name}"`:                              0,
		`["sh", "-c", "exec my-way-in {name} \"$3\"", "sh"]`: 0,
		`"ssh"`:   0,
		`"local"`: 0,
	} {
		t.Run(link, func(t *testing.T) {
			inv, _ := parse(t, "[[host]]\nname = \"ssh\"\nlink = "+link+"\n")
			if got := inv.Hosts[0].Shells; got != want {
				t.Errorf("%s: %d shells, want %d", link, got, want)
			}
		})
	}
	inv, _ := parse(t,
		"[defaults]\nlink = 'ssh {name}'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\nlink = 'docker exec -i b'\n")
	if inv.Hosts[0].Shells != 1 || inv.Hosts[1].Shells != 0 {
		t.Errorf("got %+v, want one shell for host a and none for b", inv)
	}
}
