package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func parse(t *testing.T, text string) (*Inventory, []string) {
	t.Helper()
	inv, warnings, err := Parse([]byte(text), "hosts.toml")
	if err != nil {
		t.Fatalf("%v", err)
	}
	return inv, warnings
}

// Every default of DESIGN 8 and K5 (n - 1 slots on n cores).
func TestDefaultsOfAHost(t *testing.T) {
	inv, warnings := parse(t, "[[host]]\nname = \"melon4\"\n")
	want := &Host{
		Name: "melon4", Addresses: []string{"melon4"}, Slots: SlotRule{Less: 1}, Yield: true,
		Nice: 10, GPUs: -1, Weight: 1, Link: "ssh", File: "hosts.toml", Line: 1,
	}
	if len(warnings) > 0 || len(inv.Hosts) != 1 || !reflect.DeepEqual(inv.Hosts[0], want) {
		t.Errorf("got %+v, %v\nwant %+v", inv.Hosts[0], warnings, want)
	}
}

func TestEveryKey(t *testing.T) {
	inv, warnings := parse(t, `
[[host]]
name = "n1"
address = ["10.0.0.1", "[fe80::1]"]
port = 2222
user = "bob"
identity = "~/.ssh/lab"
jump = ["gw1", "bob@gw2:2200"]
slots = 8
yield = false
max_load = 4.5
min_mem_free = "2G"
min_disk_free = 1048576
quiet = ["22:00-06:00", "12:00-13:00"]
nice = 0
tags = ["gpu", "a,b"]
gpus = 2
weight = 2
work_dir = "/scratch/bob/"
setup = """
module load cuda
ulimit -c 0
"""
lost_after = "5m"
`)
	want := &Host{
		Name: "n1", Addresses: []string{"10.0.0.1", "fe80::1"}, Port: 2222, User: "bob", Identity: "~/.ssh/lab",
		Jump: []string{"gw1", "bob@gw2:2200"}, Slots: SlotRule{Fixed: 8}, MaxLoad: 4.5, MinMemFree: 2 << 30,
		MinDiskFree: 1 << 20, Quiet: []Quiet{{22 * time.Hour, 6 * time.Hour}, {12 * time.Hour, 13 * time.Hour}},
		Tags: []string{"a", "b", "gpu"}, GPUs: 2, Weight: 2, WorkDir: "/scratch/bob",
		Setup: "module load cuda\nulimit -c 0", LostAfter: 5 * time.Minute, Link: "ssh", File: "hosts.toml", Line: 2,
	}
	if len(warnings) > 0 || !reflect.DeepEqual(inv.Hosts[0], want) {
		t.Errorf("got  %+v, %v\nwant %+v", inv.Hosts[0], warnings, want)
	}
}

func TestDefaultsTableAndRanges(t *testing.T) {
	inv, warnings := parse(t, `
[[host]]            # stands before [defaults], which still holds for it
name = "node[01-02]"
address = ["node[01-02].lab", "10.0.0.[1-2]"]
nice = 5
[defaults]
user = "carol"
nice = 15
tags = "lab"
jump = "gw"
[[host]]
name = "box[1-2]"
link = "docker exec -i {name}"
tags = []
[[host]]
name = "near"
jump = "none"
[[host]]
name = "here"
link = "local"
`)
	if len(warnings) > 0 {
		t.Errorf("warnings %v", warnings)
	}
	var names []string
	for _, h := range inv.Hosts {
		names = append(names, h.Name)
		if h.User != "carol" {
			t.Errorf("%s: user %q", h.Name, h.User)
		}
	}
	if got := strings.Join(names, " "); got != "node01 node02 box1 box2 near here" {
		t.Fatalf("hosts %s", got)
	}
	if h := inv.Find("node02"); !reflect.DeepEqual(h.Addresses, []string{"node02.lab", "10.0.0.2"}) || h.Nice != 5 || !h.Has([]string{"lab"}) {
		t.Errorf("node02: %+v", h)
	}
	if h := inv.Find("box2"); h.Nice != 15 || h.Link != "command" || !reflect.DeepEqual(h.Command, []string{"docker", "exec", "-i", "box2"}) || len(h.Tags) != 0 {
		t.Errorf("box2: %+v", h)
	}
	// An empty list of gateways is not the same as none said: ssh_config is not asked then.
	if h := inv.Find("near"); h.Jump == nil || len(h.Jump) != 0 {
		t.Errorf("near: %+v", h)
	}
	if h := inv.Find("here"); h.Link != "local" || h.Addresses != nil {
		t.Errorf("here: %+v", h)
	}
	if inv.Find("nobody") != nil {
		t.Error("found nobody")
	}
}

// slots and reserve: what a host says comes before [defaults]; K5.
func TestSlotsAndReserve(t *testing.T) {
	for _, c := range []struct {
		defaults, host string
		cores, want    int
	}{
		{"", "", 8, 7},
		{"", "", 1, 1},
		{"", "slots = 5", 8, 5},
		{"", `slots = "5"`, 8, 5},
		{"", `slots = "cores"`, 8, 8},
		{"", `slots = "cores-3"`, 8, 5},
		{"", `slots = "cores - 3"`, 8, 5},
		{"", `slots = "cores-9"`, 8, 1},
		{"", "reserve = 2", 8, 6},
		{"", "reserve = 0", 8, 8},
		{"", "slots = \"cores\"\nreserve = 2", 8, 6},
		{"reserve = 3", "", 8, 5},
		{"reserve = 3", "slots = 8", 8, 8},
		{"reserve = 3", `slots = "cores"`, 8, 5},
		{"reserve = 3", `slots = "cores-1"`, 8, 7},
		{`slots = "cores-1"`, "reserve = 4", 8, 4},
		{"slots = 3", "", 8, 3},
		{"slots = 3", `slots = "cores"`, 8, 8},
	} {
		inv, _ := parse(t, "[defaults]\n"+c.defaults+"\n[[host]]\nname = \"a\"\n"+c.host+"\n")
		h := inv.Hosts[0]
		if got := h.Slots.Count(c.cores); got != c.want {
			t.Errorf("defaults %q, host %q: %d slots of %d cores, want %d", c.defaults, c.host, got, c.cores, c.want)
		}
	}
}

func TestHas(t *testing.T) {
	h := &Host{Tags: []string{"avx2", "gpu"}}
	for tags, want := range map[string]bool{"": true, "gpu": true, "gpu avx2": true, "gpu big": false} {
		if h.Has(strings.Fields(tags)) != want {
			t.Errorf("Has(%q) is not %v", tags, want)
		}
	}
}

// P1: with no inventory there is this machine.
func TestLocal(t *testing.T) {
	inv := Local()
	h := inv.Hosts[0]
	if inv.File != "" || len(inv.Hosts) != 1 || h.Link != "local" || nameProblem(h.Name) != "" ||
		h.Slots.Count(8) != 7 || h.Slots.Count(1) != 1 || !h.Yield || h.GPUs != -1 || h.Weight != 1 {
		t.Errorf("%+v", h)
	}
}

func TestFindInventory(t *testing.T) {
	dir, config := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_CONFIG_HOME", config)
	find := func(flag, want string) {
		t.Helper()
		if got, err := FindInventory(flag); err != nil || got != want {
			t.Errorf("FindInventory(%q) = %q, %v; want %q", flag, got, err, want)
		}
	}
	write := func(file string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("[[host]]\nname='a'\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	find("", "")
	inConfig := filepath.Join(config, "dcs-tui", "hosts.toml")
	write(inConfig)
	find("", inConfig)
	write("hosts.toml")
	find("", "hosts.toml")
	write("other.toml")
	find("other.toml", "other.toml")
	if _, err := FindInventory("missing.toml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing --hosts file: %v", err)
	}
	t.Setenv("XDG_CONFIG_HOME", "relative") // does not count (XDG base directory specification)
	t.Setenv("HOME", config)
	if err := os.Remove("hosts.toml"); err != nil {
		t.Fatal(err)
	}
	find("", "")
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "h.toml")
	if err := os.WriteFile(file, []byte("[[host]]\r\nname = 'a'\r\nport = 2222\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inv, _, err := Load(file)
	if err != nil || inv.File != file || inv.Hosts[0].Port != 2222 || inv.Hosts[0].File != file {
		t.Errorf("%+v, %v", inv, err)
	}
	if _, _, err := Load(filepath.Dir(file)); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, _, err := Load(file + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.Truncate(file, maxInventory+1); err != nil {
		t.Fatal(err)
	}
	for _, endless := range []string{file, "/dev/zero"} {
		if _, _, err := Load(endless); err == nil || !strings.Contains(err.Error(), endless+" is longer than 8 MiB; that is no inventory") {
			t.Errorf("%s: %v", endless, err)
		}
	}
}

// An inventory may be a pipe, such as <(…) of a shell. Its text is kept, because a pipe
// cannot be read again.
func TestLoadFromAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const text = "[[host]]\nname = 'a'\n"
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	inv, _, err := Load(fmt.Sprintf("/dev/fd/%d", r.Fd()))
	if err != nil || len(inv.Hosts) != 1 || inv.Text != text {
		t.Errorf("%+v, %v", inv, err)
	}
}
