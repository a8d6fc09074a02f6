package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// changingInventory is an inventory whose file is changed by a test.
type changingInventory struct {
	*Inventory
	t    *testing.T
	run  *rundir.Run
	file string
	said []string
}

func newChangingInventory(t *testing.T, text string, asked map[string]jobs.HostRequest) *changingInventory {
	t.Helper()
	c := &changingInventory{t: t, file: filepath.Join(t.TempDir(), "hosts.toml")}
	c.write(text)
	inv, _, err := hosts.Load(c.file)
	must(t, err)
	c.run = disktest.NewRun(t)
	unexpected := func(text string) { t.Errorf("unexpected text: %s", text) }
	c.Inventory = newInventory(c.run, &Options{Inventory: inv, InventoryFile: c.file,
		PrepareInventory: func(inv *hosts.Inventory) {
			for _, h := range inv.Hosts {
				h.Nice = 17
			}
		}}, &jobs.Table{Inventory: asked}, unexpected, func(text string) { c.said = append(c.said, text) })
	return c
}

func (c *changingInventory) write(text string) {
	c.t.Helper()
	must(c.t, os.WriteFile(c.file, []byte(text), 0o600))
}

// reload writes the file and has it read at once.
func (c *changingInventory) reload(text string) {
	c.t.Helper()
	c.write(text)
	if err := c.Reload(); err != nil {
		c.t.Fatalf("reload: %v", err)
	}
}

// settle lets the file be read twice.
func (c *changingInventory) settle() {
	c.check(false)
	c.check(false)
}

// wantHosts checks the hosts and the problem with the file.
func (c *changingInventory) wantHosts(when, names, problem string) {
	c.t.Helper()
	var got []string
	for _, h := range c.Hosts() {
		got = append(got, h.Name)
	}
	if text := strings.Join(got, " "); text != names {
		c.t.Errorf("%s: hosts %q, want %q", when, text, names)
	}
	if text := c.Problem(); problem == "" && text != "" || !strings.Contains(text, problem) {
		c.t.Errorf("%s: problem %q, want %q", when, text, problem)
	}
}

func inventoryOf(names ...string) (text string) {
	for _, name := range names {
		text += "[[host]]\nname = \"" + name + "\"\n"
	}
	return text
}

// TestChangedInventoryFileIsReadAgain checks that the file is read again when it changes (B5).
// Content that was seen only once may be incomplete and does not count. A missing or invalid file
// changes nothing and is reported until it is fixed.
func TestChangedInventoryFileIsReadAgain(t *testing.T) {
	c := newChangingInventory(t, inventoryOf("a", "b"), nil)
	c.wantHosts("at first", "a b", "")
	c.write(inventoryOf("b", "c"))
	if c.check(false) {
		t.Error("content that was seen once counts")
	}
	c.wantHosts("seen once", "a b", "")
	if !c.check(false) || c.check(false) {
		t.Error("content that was seen twice does not count once")
	}
	c.wantHosts("seen twice", "b c", "")
	if h := c.Hosts()[1]; h.Nice != 17 {
		t.Errorf("a host that was added is not prepared: nice %d", h.Nice)
	}
	if text := strings.Join(c.said, "\n"); !strings.Contains(text, "has changed: added c; removed a") {
		t.Errorf("said %q", text)
	}
	c.write(inventoryOf("b", "c") + "slot = 3\n")
	c.settle()
	c.wantHosts("with an error", "b c", `hosts.toml:5: unknown key "slot"`)
	if err := c.Reload(); err == nil || !strings.Contains(err.Error(), `unknown key "slot"`) {
		t.Errorf("reload: %v", err)
	}
	must(t, os.Remove(c.file))
	c.check(false)
	c.wantHosts("gone", "b c", "is gone: the run keeps its hosts")
	c.write(inventoryOf("b", "c"))
	c.settle()
	c.wantHosts("as it was", "b c", "")
	c.reload(inventoryOf("d"))
	c.wantHosts("on request", "d", "")
}

// TestRequestsSurviveAReloadOfTheInventory checks that requests of users survive a reload and apply
// to later dispatchers. They are included in the inventory that is stored for later commands, also
// if the file is a list of logins (B5).
func TestRequestsSurviveAReloadOfTheInventory(t *testing.T) {
	for _, file := range []struct{ name, before, after string }{
		{"toml", inventoryOf("a", "b"), inventoryOf("a", "b", "c")},
		{"logins", "a\nb\n", "a\nb\nc\n"},
	} {
		t.Run(file.name, func(t *testing.T) {
			c := newChangingInventory(t, file.before, map[string]jobs.HostRequest{"early": {Options: "slots=3"},
				"a": {Removed: true}})
			c.wantHosts("at first", "b early", "")
			c.HandleRequest("late", jobs.HostRequest{Options: "tags=gpu address=10.0.0.5"})
			c.wantHosts("added", "b early late", "")
			c.reload(file.after)
			c.wantHosts("after a reload", "b c early late", "")
			if err := c.Check("x", "slot=3"); err == nil {
				t.Error("a wrong option passes")
			}
			c.store()
			text, _, err := c.run.Inventory()
			must(t, err)
			kept, _, err := hosts.Parse([]byte(text), "")
			if err != nil {
				t.Fatalf("kept: %v\n%s", err, text)
			}
			if h := kept.Find("late"); h == nil || h.Addresses[0] != "10.0.0.5" || kept.Find("early") == nil ||
				kept.Find("c") == nil {
				t.Errorf("kept %q", text)
			}
		})
	}
}

// TestChangedInventoryGoesToTheDispatcher checks that the inventory is passed to the dispatcher when
// its file has changed, with its providers and tokens, and not after a request of a person, which
// the dispatcher knows (B5, P3, T7).
func TestChangedInventoryGoesToTheDispatcher(t *testing.T) {
	c := newChangingInventory(t, inventoryOf("a"), nil)
	over, given, done := make(chan struct{}), make(chan *hosts.Inventory), make(chan struct{})
	go func() {
		defer close(done)
		c.serve(over, func(inv *hosts.Inventory) error { given <- inv; return nil })
	}()
	c.HandleRequest("late", jobs.HostRequest{Options: "slots=2"})
	provider := "[[provider]]\nname = \"cloud\"\ncreate = \"c {name}\"\nlist = \"l\"\n" +
		"terminate = \"t {name}\"\nmax = 7\n"
	c.reload(inventoryOf("a", "b") + provider + "[tokens]\nmatlab = 3\n")
	inv := <-given
	if len(inv.Hosts) != 2 || len(inv.Providers) != 1 || len(inv.Tokens) != 1 {
		t.Errorf("given %+v, want two hosts, a provider, and tokens", inv)
	}
	close(over)
	<-done
}

// TestInventoryIsReadAgainWhateverItsTime checks that a changed file is read after Reread although
// its time and size have not changed, as on an NFS client that has cached them (B5).
func TestInventoryIsReadAgainWhateverItsTime(t *testing.T) {
	c := newChangingInventory(t, inventoryOf("a", "b"), nil)
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(c.file, old, old))
	c.settle()
	c.write(inventoryOf("a", "c"))
	must(t, os.Chtimes(c.file, old, old))
	c.settle()
	c.wantHosts("before", "a b", "")
	c.Reread()
	c.settle()
	c.wantHosts("after", "a c", "")
}
