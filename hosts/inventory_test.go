package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

func parse(t *testing.T, text string) (*Inventory, []string) {
	t.Helper()
	inv, warnings, err := Parse([]byte(text), "hosts.toml")
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return inv, warnings
}

// writeFile writes a file, with its directories, and returns its path.
func writeFile(t *testing.T, file, text string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o700)); err != nil {
		t.Fatal(err)
	}
	return file
}

// refuse fails the test unless an inventory is refused with an error that contains want.
func refuse(t *testing.T, text, want string) {
	t.Helper()
	if _, _, err := Parse([]byte(text), "hosts.toml"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want %q", text, err, want)
	}
}

// TestDefaultsOfAHost checks every default, such as n - 1 slots on n cores.
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

// TestEveryKeyIsParsed checks the value of each key of a [[host]].
func TestEveryKeyIsParsed(t *testing.T) {
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
pin = true
tags = ["gpu", "a,b"]
gpus = 2
weight = 2
work_dir = "/scratch/bob/"
setup = """
module load cuda
ulimit -c 0
"""
lost_after = "5m"
heartbeat = "10s"
suspect_after = "20s"
straggler_factor = 1.5
straggler_age = "500ms"
`)
	want := &Host{
		Name:            "n1",
		Addresses:       []string{"10.0.0.1", "fe80::1"},
		Port:            2222,
		User:            "bob",
		Identity:        "~/.ssh/lab",
		Jump:            []string{"gw1", "bob@gw2:2200"},
		Slots:           SlotRule{Fixed: 8},
		MaxLoad:         4.5,
		MinMemFree:      2 << 30,
		MinDiskFree:     1 << 20,
		Pin:             true,
		Quiet:           []Quiet{{22 * time.Hour, 6 * time.Hour}, {12 * time.Hour, 13 * time.Hour}},
		Tags:            []string{"a", "b", "gpu"},
		GPUs:            2,
		Weight:          2,
		WorkDir:         "/scratch/bob",
		Setup:           "module load cuda\nulimit -c 0",
		LostAfter:       5 * time.Minute,
		Heartbeat:       10 * time.Second,
		SuspectAfter:    20 * time.Second,
		StragglerFactor: 1.5,
		StragglerAge:    500 * time.Millisecond,
		Link:            "ssh",
		File:            "hosts.toml",
		Line:            2,
	}
	if len(warnings) > 0 || !reflect.DeepEqual(inv.Hosts[0], want) {
		t.Errorf("got  %+v, %v\nwant %+v", inv.Hosts[0], warnings, want)
	}
}

// TestDefaultsApplyToEveryHost checks that [defaults] applies to all hosts of the file, also to
// earlier ones, that a host can override it, and that a range stands for several hosts.
func TestDefaultsApplyToEveryHost(t *testing.T) {
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
	if h := inv.Find("node02"); !reflect.DeepEqual(h.Addresses, []string{"node02.lab", "10.0.0.2"}) || h.Nice != 5 ||
		!h.HasTags([]string{"lab"}) {
		t.Errorf("node02: %+v", h)
	}
	if h := inv.Find("box2"); h.Nice != 15 || h.Link != "command" ||
		!reflect.DeepEqual(h.Command, []string{"docker", "exec", "-i", "box2"}) || len(h.Tags) != 0 {
		t.Errorf("box2: %+v", h)
	}
	// An empty list of gateways is different from a missing list: with an empty list, ssh_config is
	// not consulted.
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

// TestHostOverridesSlotsAndReserve checks that slots and reserve of a host override those of
// [defaults] (K5).
func TestHostOverridesSlotsAndReserve(t *testing.T) {
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
		t.Run(c.defaults, func(t *testing.T) {
			inv, _ := parse(t, "[defaults]\n"+c.defaults+"\n[[host]]\nname = \"a\"\n"+c.host+"\n")
			h := inv.Hosts[0]
			if got := h.Slots.Count(c.cores); got != c.want {
				t.Errorf("defaults %q, host %q: %d slots of %d cores, want %d", c.defaults, c.host, got,
					c.cores, c.want)
			}
		})
	}
}

// TestHostHasAllTags checks that a host has a list of tags if it has each of them.
func TestHostHasAllTags(t *testing.T) {
	h := &Host{Tags: []string{"avx2", "gpu"}}
	for tags, want := range map[string]bool{"": true, "gpu": true, "gpu avx2": true, "gpu big": false} {
		t.Run(tags, func(t *testing.T) {
			if h.HasTags(strings.Fields(tags)) != want {
				t.Errorf("Has(%q) is not %v", tags, want)
			}
		})
	}
}

// TestThisMachineIsTheOnlyHostWithoutAnInventory checks that, without an inventory, this machine is
// the only host (P1).
func TestThisMachineIsTheOnlyHostWithoutAnInventory(t *testing.T) {
	inv := Local()
	h := inv.Hosts[0]
	if inv.File != "" || len(inv.Hosts) != 1 || h.Link != "local" || nameProblem(h.Name) != "" ||
		h.Slots.Count(8) != 7 || h.Slots.Count(1) != 1 || !h.Yield || h.GPUs != -1 || h.Weight != 1 {
		t.Errorf("Local: got %+v, want only this machine, with the defaults", h)
	}
}

// TestWhichInventoryIsFound checks the order in which inventories are looked for: that of --hosts,
// hosts.toml here, and the one in the user's configuration.
func TestWhichInventoryIsFound(t *testing.T) {
	dir, config := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_CONFIG_HOME", config)
	find := func(flag, want string) {
		t.Helper()
		if got, err := FindInventory(flag); err != nil || got != want {
			t.Errorf("FindInventory(%q) = %q, %v; want %q", flag, got, err, want)
		}
	}
	siteInventory = filepath.Join(t.TempDir(), "hosts.toml")
	t.Cleanup(func() { siteInventory = "/etc/dcs-tui/hosts.toml" })
	find("", "")
	find("", writeFile(t, siteInventory, ""))
	find("", writeFile(t, filepath.Join(config, "dcs-tui", "hosts.toml"), ""))
	find("", writeFile(t, "hosts.toml", ""))
	find("other.toml", writeFile(t, "other.toml", ""))
	if _, err := FindInventory("missing.toml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing --hosts file: %v", err)
	}
	t.Setenv("XDG_CONFIG_HOME", "relative") // does not count (XDG base directory specification)
	t.Setenv("HOME", config)
	if err := os.Remove("hosts.toml"); err != nil {
		t.Fatal(err)
	}
	find("", siteInventory)
}

// TestOnlyInventoryFilesAreLoaded checks that a directory, a missing file, and a file that is too
// long are refused.
func TestOnlyInventoryFilesAreLoaded(t *testing.T) {
	file := writeFile(t, filepath.Join(t.TempDir(), "h.toml"), "[[host]]\r\nname = 'a'\r\nport = 2222\r\n")
	inv, _, err := Load(file)
	if err != nil || inv.File != file || inv.Hosts[0].Port != 2222 || inv.Hosts[0].File != file {
		t.Errorf("Load: got %+v, %v; want the host with its port and file", inv, err)
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
		t.Run(endless, func(t *testing.T) {
			if _, _, err := Load(endless); err == nil ||
				!strings.Contains(err.Error(), endless+" is longer than 8 MiB, so it is not an inventory") {
				t.Errorf("%s: %v", endless, err)
			}
		})
	}
}

// TestInventoryMayBeAPipe checks that an inventory may be a pipe, such as <(…) of a shell. Its text
// is kept, because a pipe cannot be read again.
func TestInventoryMayBeAPipe(t *testing.T) {
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
		t.Errorf("Load of a pipe: got %+v, %v; want its host and text", inv, err)
	}
}

// TestExampleFileDocumentsEveryKey checks that hosts.toml.example documents every key, can be
// copied without harm, and can be parsed, also with all comments turned into settings.
func TestExampleFileDocumentsEveryKey(t *testing.T) {
	const file = "../hosts.toml.example"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	commented := regexp.MustCompile(`(?m)^#([a-z_]+ = |\[\[)`)
	for _, c := range []struct {
		text  []byte
		hosts int
	}{{text, 4}, {commented.ReplaceAll(text, []byte("$1")), 21}} {
		inv, warnings, err := Parse(c.text, file)
		if err != nil || len(warnings) > 0 || len(inv.Hosts) != c.hosts {
			t.Fatalf("Parse: got %v, %v, warnings %v; want %d hosts", inv, err, warnings, c.hosts)
		}
	}
	for _, k := range inventoryKeys {
		key := k.name
		if !regexp.MustCompile(`(?m)^#?` + key + ` = .`).Match(text) {
			t.Errorf("the key %s is not in %s", key, file)
		}
	}
}

// TestParseQuiet checks which daily times are accepted as quiet hours.
func TestParseQuiet(t *testing.T) {
	for s, want := range map[string]Quiet{
		"22:00-06:00":   {22 * time.Hour, 6 * time.Hour},
		"8:30 - 17:45":  {8*time.Hour + 30*time.Minute, 17*time.Hour + 45*time.Minute},
		"00:00-24:00":   {0, 24 * time.Hour},
		"23:59 - 00:00": {23*time.Hour + 59*time.Minute, 0},
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := parseQuiet(s); err != nil || got != want {
				t.Errorf("parseQuiet(%q) = %v, %v; want %v", s, got, err, want)
			}
		})
	}
	for _, s := range []string{"", "22-06", "22:00", "25:00-06:00", "22:60-06:00", "22:00-22:00", "24:01-01:00",
		"24:00-06:00", "-1:00-02:00", "22:0-06:00"} {
		t.Run(s, func(t *testing.T) {
			if got, err := parseQuiet(s); err == nil {
				t.Errorf("parseQuiet(%q) = %v; want an error", s, got)
			}
		})
	}
}

// TestCommandIsSplitAsInAShell checks that a command link is split like in a shell, and that syntax
// that only a shell can evaluate is refused.
func TestCommandIsSplitAsInAShell(t *testing.T) {
	for s, want := range map[string]string{
		`docker exec -i web`:     `docker|exec|-i|web`,
		`  a   b	c `:             `a|b|c`,
		`a 'b c' "d e"`:          `a|b c|d e`,
		`a b\ c`:                 `a|b c`,
		`a "x\"y\\z\n" 'q\'`:     `a|x"y\z\n|q\`,
		`a '' ""`:                `a||`,
		`sh -c 'cd x && exec y'`: `sh|-c|cd x && exec y`,
		`a"b"'c'd`:               `abcd`,
		``:                       ``,
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := splitWords(s); err != nil || strings.Join(got, "|") != want {
				t.Errorf("splitWords(%q) = %q, %v; want %s", s, got, err, want)
			}
		})
	}
	for s, want := range map[string]string{
		`a 'b`: "not closed", `a "b`: "not closed", `a\`: "backslash",
		`a | b`: "no shell", `a > b`: "no shell", `a $HOME`: "no shell", `a; b`: "no shell",
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := splitWords(s); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("splitWords(%q) = %q, %v; want %q", s, got, err, want)
			}
		})
	}
}

// TestQuantitiesMeanTheSameEverywhere checks that a size, a duration, and a number mean the same in
// a jobs file and in hosts.toml, or are refused in both.
func TestQuantitiesMeanTheSameEverywhere(t *testing.T) {
	type reading struct {
		value any
		err   error
	}
	job := func(option, text string, value func(*jobs.Spec) any) (r reading) {
		specs, err := jobs.Parse(strings.NewReader(fmt.Sprintf("#DCS %s=%s\ntrue\n", option, text)), "jobs", false, 1)
		if r.err = err; err == nil {
			r.value = value(specs[0])
		}
		return r
	}
	host := func(key, text string, value func(*Host) any) (r reading) {
		inv, _, err := Parse(fmt.Appendf(nil, "[[host]]\nname = 'a'\n%s = %s\n", key, text), "hosts.toml")
		if r.err = err; err == nil {
			r.value = value(inv.Hosts[0])
		}
		return r
	}
	for _, c := range []struct {
		option, key string
		job         func(*jobs.Spec) any
		host        func(*Host) any
		texts       string
		numbers     bool // texts without quotes
	}{
		{"mem", "min_mem_free", func(s *jobs.Spec) any { return s.MemBytes }, func(h *Host) any { return h.MinMemFree },
			"8G 512M 1T 1.5k 1048576 100B 2GB 2GiB 2Gi 7b 1p 16 1048575 G 8X 8GG -1 0.5 1e3 9999999P 0x10 NaN", false},
		{"mem", "min_disk_free", func(s *jobs.Spec) any { return s.MemBytes },
			func(h *Host) any { return h.MinDiskFree },
			"16 1048575 1048576 4294967296 -1", true},
		{"timeout", "lost_after", func(s *jobs.Spec) any { return s.Timeout }, func(h *Host) any { return h.LostAfter },
			"60s 5m 1.5h 1d 2w 1d12h 90 1500ms 5x 5m3 -5m +5m 1e3 5M 0 0s 999999w soon", false},
		{"timeout", "lost_after", func(s *jobs.Spec) any { return s.Timeout }, func(h *Host) any { return h.LostAfter },
			"90 0 -1", true},
		{"slots", "slots", func(s *jobs.Spec) any { return s.Slots }, func(h *Host) any { return h.Slots.Fixed },
			"1 16 4096 4097 65536 100000 0 -1 1.5", true},
		{"gpus", "gpus", func(s *jobs.Spec) any { return s.GPUs.Devices() }, func(h *Host) any { return h.GPUs },
			"0 4 64 65 256 257 1024 1025", true},
	} {
		t.Run(c.option, func(t *testing.T) {
			accepted := 0
			for _, text := range strings.Fields(c.texts) {
				j, quoted := job(c.option, text, c.job), text
				if !c.numbers {
					quoted = `"` + text + `"`
				}
				h := host(c.key, quoted, c.host)
				if (j.err == nil) != (h.err == nil) || j.err == nil && j.value != h.value {
					t.Errorf("%s=%s is %v (%v), %s = %s is %v (%v)", c.option, text, j.value, j.err, c.key, quoted,
						h.value, h.err)
				}
				if j.err == nil {
					accepted++
				}
			}
			if accepted == 0 {
				t.Errorf("none of %s=%s is accepted", c.option, c.texts)
			}
		})
	}
	if h := host("min_mem_free", "0", func(h *Host) any { return h.MinMemFree }); h.err != nil || h.value != int64(0) {
		t.Errorf("0, no such limit: %+v", h)
	}
}

// TestKeptPartsAreParsed checks the slots and GPUs that a host keeps for queues, and that invalid
// values are refused with file and line (K10).
func TestKeptPartsAreParsed(t *testing.T) {
	const text = "[[host]]\nname = 'a'\nslots = 4\nqueues = %s\ngpus = 2\n"
	for queues, want := range map[string]string{
		`"urgent"`: "urgent",
		`["urgent", "late night slots=2 gpus=1", "x gpus=1"]`: "urgent, late night slots=2 gpus=1, x gpus=1",
		`[]`: "",
	} {
		t.Run(queues, func(t *testing.T) {
			if inv, _ := parse(t, fmt.Sprintf(text, queues)); inv.Hosts[0].KeptText() != want {
				t.Errorf("%s: got %q, want %q", queues, inv.Hosts[0].KeptText(), want)
			}
		})
	}
	for queues, want := range map[string]string{
		`["a slots=3", "b slots=2"]`: "5 slots are kept, and the host has 4",
		`"a gpus=3"`:                 "3 GPUs are kept, and the host has 2",
		`"a slots=0"`:                `"a slots=0" is not one of "QUEUE"`,
		`"a slots=1 slots=2"`:        `"a slots=1 slots=2" is not one of`,
		`["a", "a slots=1"]`:         "the queue a is given twice",
		`"slots=2"`:                  `"slots=2" is not one of`,
		`2`:                          "must be a text or a list of texts",
	} {
		t.Run(queues, func(t *testing.T) {
			refuse(t, fmt.Sprintf(text, queues), "hosts.toml:4: queues: "+want)
		})
	}
}

// TestIsOpenTo checks which queues may use a host, and how much of it.
func TestIsOpenTo(t *testing.T) {
	h := &Host{Queues: []KeptPart{{Queue: "a", Slots: 2}, {Queue: "b", GPUs: 1}}}
	if !h.IsOpenTo("") || !h.IsOpenTo("a") {
		t.Error("a host that keeps parts is not open to all queues")
	}
	slots, gpus := h.KeptFrom("b")
	if slots != 2 || gpus != 0 {
		t.Errorf("%d slots and %d GPUs are kept from b", slots, gpus)
	}
	h.Queues = append(h.Queues, KeptPart{Queue: "c"})
	if h.IsOpenTo("") || !h.IsOpenTo("a") || !h.IsOpenTo("c") {
		t.Error("a host that is kept is open to other queues than those that it names")
	}
}

// TestTokensOfTheInventory checks the counts of [tokens] (T7).
func TestTokensOfTheInventory(t *testing.T) {
	text := "[tokens]\nmatlab = 5\nansys = 0\n[[host]]\nname = 'a'\n"
	inv, _ := parse(t, text)
	if got := fmt.Sprint(inv.TokensWith([]jobs.Token{{Name: "ansys", Count: 2}})); got != "[ansys:2 matlab:5]" {
		t.Errorf("got %s, want [ansys:2 matlab:5]", got)
	}
	for says, wrong := range map[string]string{
		"matlab = -1":  "hosts.toml:2: matlab: must be from 0 to 1000000",
		"matlab = '5'": "hosts.toml:2: matlab: must be a whole number",
		"'a b' = 1":    `hosts.toml:2: a b: "a b" is not a name of tokens`,
	} {
		t.Run(says, func(t *testing.T) {
			refuse(t, strings.Replace(text, "matlab = 5", says, 1), wrong)
		})
	}
}

// TestSlotsOfLoginsAreCores checks that --jobs counts from the number before a login, as in GNU parallel, and
// from the cores of other hosts.
func TestSlotsOfLoginsAreCores(t *testing.T) {
	const logins, tables = "4/a\nb\n", "[[host]]\nname = 'a'\nslots = 4\n[[host]]\nname = 'b'\n"
	for _, c := range []struct {
		content string
		rule, a SlotRule
	}{
		{logins, SlotRule{Fixed: 8}, SlotRule{Fixed: 8}},
		{logins, SlotRule{}, SlotRule{Fixed: 4}},
		{logins, SlotRule{Less: 1}, SlotRule{Fixed: 3}},
		{logins, SlotRule{Less: 9}, SlotRule{Fixed: 1}},
		{tables, SlotRule{Less: 1}, SlotRule{Less: 1}},
	} {
		inv, _ := parse(t, c.content)
		inv.SetSlots(c.rule)
		if a, b := inv.Hosts[0].Slots, inv.Hosts[1].Slots; a != c.a || b != c.rule {
			t.Errorf("%v: %v and %v, want %v and %v", c.rule, a, b, c.a, c.rule)
		}
	}
}

// TestInventoryMayBeAListOfLogins checks that an inventory may be a plain list in the syntax of GNU
// parallel's --sshloginfile, and that other lines are refused with file and line.
func TestInventoryMayBeAListOfLogins(t *testing.T) {
	inv, _ := parse(t, "# our room\nws01\n 8/ada@ws02:2222 # big\n\n4/ws[03-04]\n1/:\n")
	local := Local().Hosts[0].Name
	want := []Host{
		{Name: "ws01", Addresses: []string{"ws01"}, Slots: SlotRule{Less: 1}, Link: "ssh", Line: 2},
		{Name: "ws02", Addresses: []string{"ws02"}, Slots: SlotRule{Fixed: 8}, User: "ada", Port: 2222, Link: "ssh",
			Line: 3},
		{Name: "ws03", Addresses: []string{"ws03"}, Slots: SlotRule{Fixed: 4}, Link: "ssh", Line: 5},
		{Name: "ws04", Addresses: []string{"ws04"}, Slots: SlotRule{Fixed: 4}, Link: "ssh", Line: 5},
		{Name: local, Slots: SlotRule{Fixed: 1}, Link: "local", Line: 6},
	}
	if len(inv.Hosts) != len(want) {
		t.Fatalf("%d hosts, want %d", len(inv.Hosts), len(want))
	}
	for i, w := range want {
		h := inv.Hosts[i]
		if h.Name != w.Name || !slices.Equal(h.Addresses, w.Addresses) || h.Slots != w.Slots || h.User != w.User ||
			h.Port != w.Port ||
			h.Link != w.Link || h.Line != w.Line || !h.Yield || h.Nice != 10 || h.GPUs != -1 || h.Weight != 1 {
			t.Errorf("host %d = %+v\nwant %+v with the defaults", i+1, *h, w)
		}
	}
	for _, c := range []struct{ text, want string }{
		{
			"ws01\nssh -p 22 ws02\n",
			`hosts.toml:2: "ssh -p 22 ws02" has spaces: a login is [SLOTS/][USER@]HOST[:PORT]; ` +
				`options of ssh belong in ~/.ssh/config`,
		},
		{"0/ws01\n", `hosts.toml:1: "0/ws01" does not begin with a number of slots from 1 to 4096: ` +
			`a login is [SLOTS/][USER@]HOST[:PORT]`},
		{"ws01\n2/ws01\n", "hosts.toml:2: the host ws01 is given twice, first on line 1"},
		{
			"-oProxyCommand\n",
			`hosts.toml:1: the host name "-oProxyCommand" starts with "-"; start it with a letter or digit`,
		},
		{"-x@ws01\n", `hosts.toml:1: "-x@ws01" has no user before the @: "-x" is not a user name`},
		{"ws01:0\n", `hosts.toml:1: "ws01:0": "0" is not a port from 1 to 65535`},
		{"ws01:+22\n", `hosts.toml:1: "ws01:+22": "+22" is not a port from 1 to 65535`},
		{"a@@ws01\n", `hosts.toml:1: "a@@ws01" has no user before the @: "a@" is not a user name`},
		{"“a”@ws01\n", `hosts.toml:1: "“a”@ws01" has no user before the @: "“a”" is not a user name: ` +
			`the character U+201C is a typographic quote: write a plain " instead`},
		{"[::1]2222\n", `hosts.toml:1: "[::1]2222": only :PORT may follow the ]`},
		{"ws01\n[1:2]:22\n", `hosts.toml:2: "[1:2]:22": "1:2" is not an IPv6 address`},
		{"ws01:22\nws01:22\n", "hosts.toml:2: the host ws01 is given twice, first on line 1"},
	} {
		t.Run(c.text, func(t *testing.T) {
			refuse(t, c.text, c.want)
		})
	}
}

// TestAddedHostHasTheDefaults checks that a host that is added on request has the defaults of the
// inventory and its own options, and that the text that is saved for it yields the same host.
func TestAddedHostHasTheDefaults(t *testing.T) {
	inv, _ := parse(t, "[defaults]\nslots = 7\nnice = 3\n[[host]]\nname = \"a\"\n")
	for _, c := range []struct {
		name, options string
		want          Host // only the fields that the test compares
		wrong         string
	}{
		{"b", "", Host{Slots: SlotRule{Fixed: 7}, Nice: 3, Addresses: []string{"b"}}, ""},
		{"b", "slots=4 address=10.0.0.5 tags=gpu,big",
			Host{Slots: SlotRule{Fixed: 4}, Nice: 3, Addresses: []string{"10.0.0.5"},
				Tags: []string{"big", "gpu"}}, ""},
		{"b", "  slots=cores-1   nice=0 ", Host{Slots: SlotRule{Less: 1}, Addresses: []string{"b"}}, ""},
		{"b", "yield=false weight=1.5 tags=one", Host{Slots: SlotRule{Fixed: 7}, Nice: 3, Addresses: []string{"b"},
			Tags: []string{"one"}}, ""},
		{"b", "tags=2080 user=007 address=10", Host{Slots: SlotRule{Fixed: 7}, Nice: 3, User: "007",
			Addresses: []string{"10"}, Tags: []string{"2080"}}, ""}, // texts that look like numbers
		{"b", "tags=1.10,true identity=/a,b", Host{Slots: SlotRule{Fixed: 7}, Nice: 3, Identity: "/a,b",
			Addresses: []string{"b"}, Tags: []string{"1.10", "true"}}, ""},
		{"b", "slot=4", Host{}, `unknown key "slot"; did you mean "slots"?`},
		{"b", "slots", Host{}, `"slots" is not an option of a host, such as slots=4 or tags=gpu`},
		{"b", "name=c", Host{}, `"name=c" is not an option of a host`},
		{"b", "slots=-1", Host{}, "slots"},
		{"b[1-2]", "", Host{}, "stands for 2 hosts; add them one by one"},
		{"b/c", "", Host{}, "b/c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := inv.Add(c.name, c.options)
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%s %s: error %v, want %q", c.name, c.options, err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Errorf("%s %s: %v", c.name, c.options, err)
				return
			}
			if h.Slots != c.want.Slots || h.Nice != c.want.Nice || h.User != c.want.User ||
				h.Identity != c.want.Identity ||
				strings.Join(h.Addresses, " ") != strings.Join(c.want.Addresses, " ") ||
				strings.Join(h.Tags, " ") != strings.Join(c.want.Tags, " ") {
				t.Errorf("%s %s: %+v, want %+v", c.name, c.options, *h, c.want)
			}
			again, _ := parse(t, inv.Text+AddedText(c.name, c.options))
			if kept := again.Find("b"); kept == nil || !kept.Equal(h) {
				t.Errorf("%s %s: its text gives %+v, want %+v", c.name, c.options, kept, *h)
			}
		})
	}
}

// TestEffectiveHosts checks the effective set of hosts: the hosts of the file without those that
// people removed, then those that people added, then those of providers, with each name once.
func TestEffectiveHosts(t *testing.T) {
	inv := &Inventory{Hosts: []*Host{{Name: "a"}, {Name: "b"}}}
	asked := map[string]jobs.HostRequest{"b": {Removed: true}, "d": {Options: "slots=2"}, "c": {},
		"a": {Options: "slots=9"}, "bad": {Options: "slot=2"}, "p2": {Removed: true}}
	list, errs := inv.With(asked, []*Host{{Name: "p1"}, {Name: "p2"}, {Name: "a"}})
	names := func(list []*Host) (all string) {
		for _, h := range list {
			all += h.Name + " "
		}
		return all
	}
	if got := names(list); got != "a c d p1 " {
		t.Errorf("hosts %q, want a c d p1", got)
	}
	if list[0] != inv.Hosts[0] {
		t.Error("a host of the file is not taken from the file, because people added it before")
	}
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "the host bad, which was added on request, is not used: ") {
		t.Errorf("errors %v, want one about bad", errs)
	}
}

// TestHostsCanBeAppendedToAnyInventory checks that hosts can be appended to a list of logins, and
// to the inventory of a run without a file.
func TestHostsCanBeAppendedToAnyInventory(t *testing.T) {
	logins, _ := parse(t, "# ours\n4/me@ws1:2222\nws[2-3]\n[::1]:2222\na@corp.example@ws5\n")
	again, _ := parse(t, logins.TOML()+AddedText("ws4", "slots=2"))
	if len(again.Hosts) != 6 {
		t.Fatalf("%d hosts, want 6", len(again.Hosts))
	}
	for i, h := range logins.Hosts {
		if !h.Equal(again.Hosts[i]) {
			t.Errorf("%+v, want %+v", *again.Hosts[i], *h)
		}
	}
	alone, _ := parse(t, Local().TOML())
	if len(alone.Hosts) != 1 || alone.Hosts[0].Link != "local" {
		t.Errorf("this machine: %+v", alone)
	}
	text := "[[host]]\nname = \"a\"\n"
	if inv, _ := parse(t, text); inv.TOML() != text {
		t.Errorf("the text of a file is not kept: %q", inv.TOML())
	}
}

// TestOnlyLinuxIsAHost checks that a machine with another system than Linux is refused as a host, with
// the advice to list others.
func TestOnlyLinuxIsAHost(t *testing.T) {
	if err := checkLocal("linux"); err != nil {
		t.Error(err)
	}
	for _, goos := range []string{"darwin", "freebsd"} {
		e, refused := errors.AsType[*text.Error](checkLocal(goos))
		if !refused || !strings.Contains(e.Error(), "Linux only") || !strings.Contains(e.Advice, "hosts.toml") {
			t.Errorf("%s: %v", goos, e)
		}
	}
}
