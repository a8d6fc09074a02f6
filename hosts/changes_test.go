package hosts

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// Every changed field of a host is reported, also fields that are added to Host
// later.
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
		case *[]Kept:
			*v = []Kept{{Queue: "x"}}
		case *SlotRule:
			v.Fixed = 7
		default:
			t.Fatalf("%s: of a type that this test does not know", name)
		}
		said := hostChange(old, now) != ""
		notSaid := name == "Name" || name == "File" || name == "Line" || name == "Shells" // Shells follows from Command
		if said == notSaid {
			t.Errorf("%s: said %v", name, said)
		}
	}
}

// A change of a whole lab is reported in one short line.
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
		{lab(20, 4, "old"), lab(20, 8, "new"), "added new; removed old; wsa, wsb, wsc, wsd, 16 more: slots 8 (was 4)"},
		{lab(2, 4), lab(5, 4), "added wsc, wsd, wse"},
		{lab(0, 0, "a", "b", "c", "d", "e"), nil, "removed a, b, c, d, e"},
		{lab(0, 0, "a"), []*Host{{Name: "a", Tags: []string{"gpu", "x"}, Slots: SlotRule{Less: 1}}}, "a: slots cores-1 (was cores), tags gpu x (was none)"},
	} {
		if got := Changes(c.old, c.now); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	var now []*Host
	for i, h := range lab(20, 4) {
		h.Slots.Fixed = 10 + i
		now = append(now, h)
	}
	if got := Changes(lab(20, 4), now); !strings.HasSuffix(got, "; 16 other hosts changed") || len(got) > 200 {
		t.Errorf("%q", got)
	}
}
