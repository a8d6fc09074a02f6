package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	updateDoc     = flag.Bool("update", false, "write docs/mutations.md")
	someMutations = flag.String("mutation", "", "only the defects with this in their names; docs/mutations.md is left alone")
)

// mutation is a deliberate defect.
type mutation struct {
	name  string
	file  string // in the module
	edits []edit
	seeds int  // worlds to try; 0: 600
	far   bool // in worlds that are all battered (damage.go)
	cuts  bool // in worlds in which journals end early (faultkinds.go)
}

type edit struct{ old, new string }

const mutationsDoc = "../../docs/mutations.md"

// TestMutations builds every deliberate defect, for this test alone, and holds that the
// simulator finds it: an invariant that no defect breaks would prove nothing.
func TestMutations(t *testing.T) {
	if testing.Short() || raceEnabled || !strings.Contains(flag.Lookup("test.run").Value.String(), "Mutations") {
		t.Skip("builds the simulator once for each defect: make mutations")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	caught := make([]string, len(mutations))
	var wg sync.WaitGroup
	free := make(chan int, 2)
	for i := range mutations {
		if !strings.Contains(mutations[i].name, *someMutations) {
			continue
		}
		wg.Go(func() {
			free <- i
			defer func() { <-free }()
			caught[i] = mutations[i].try(t, root, filepath.Join(dir, fmt.Sprint(i)))
		})
	}
	wg.Wait()
	if !t.Failed() && *someMutations == "" {
		checkDoc(t, caught)
	}
}

var verdict = regexp.MustCompile(`seed (\d+): (.+?) at [0-9hms.µn]+: `)

// try builds the simulator with the defect and runs it. It returns the name of the
// invariant that the first world which fails has found broken.
func (wd *mutation) try(t *testing.T, root, dir string) string {
	b, err := os.ReadFile(filepath.Join(root, wd.file))
	if err != nil {
		t.Error(err)
		return ""
	}
	text := string(b)
	for _, e := range wd.edits {
		if strings.Count(text, e.old) != 1 {
			t.Errorf("%s: %s does not have this text once any more: mend the table in dispatch/sim/mutations_table_test.go\n%s", wd.name, wd.file, e.old)
			return ""
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	sick, list, bin := filepath.Join(dir, "sick.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim.test")
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, wd.file): sick}})
	for path, content := range map[string][]byte{sick: []byte(text), list: overlay} {
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Error(err)
			return ""
		}
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o", bin, "./dispatch/sim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%s: it does not build: %v\n%s", wd.name, err, out)
		return ""
	}
	seeds := wd.seeds
	if seeds == 0 {
		seeds = 600
	}
	run := exec.Command(bin, "-test.run", "^TestSeeds$", "-test.timeout", "10m", "-seeds", fmt.Sprint(seeds), "-most", "1")
	if wd.far {
		run.Args = append(run.Args, "-battered")
	}
	if wd.cuts {
		run.Args = append(run.Args, "-cuts")
	}
	run.Env = append(os.Environ(), "GOMAXPROCS=1")
	run.Dir = filepath.Join(root, "dispatch/sim")
	out, err := run.CombinedOutput()
	m := verdict.FindSubmatch(out)
	switch {
	case err == nil:
		t.Errorf("%s: %d worlds, and nothing was found", wd.name, seeds)
	case m == nil || !slices.Contains(Invariants, string(m[2])):
		t.Errorf("%s: it failed, and not by an invariant: %v\n%s", wd.name, err, out[max(0, len(out)-3000):])
	default:
		t.Logf("%-60s seed %4s: %s", wd.name, m[1], m[2])
		_ = os.RemoveAll(dir)
		return string(m[2])
	}
	return ""
}

// checkDoc holds that docs/mutations.md is about these defects.
func checkDoc(t *testing.T, caught []string) {
	var b strings.Builder
	b.WriteString(mutationsHead)
	for i, wd := range mutations {
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", wd.name, wd.file, caught[i])
	}
	b.WriteString("\nThe invariants:\n\n")
	for _, name := range Invariants {
		n := 0
		for _, c := range caught {
			if c == name {
				n++
			}
		}
		fmt.Fprintf(&b, "- %s", name)
		if n > 0 {
			fmt.Fprintf(&b, " (%d)", n)
		}
		b.WriteString("\n")
	}
	if *updateDoc {
		if err := os.WriteFile(mutationsDoc, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	doc, err := os.ReadFile(mutationsDoc)
	if err != nil {
		t.Fatal(err)
	}
	// Which invariant notices first may change with any change of the core.
	for _, wd := range mutations {
		if !strings.Contains(string(doc), fmt.Sprintf("| %s | `%s` |", wd.name, wd.file)) {
			t.Errorf("docs/mutations.md does not have %q: go test ./dispatch/sim -run TestMutations -update", wd.name)
		}
	}
	for _, name := range Invariants {
		if !strings.Contains(string(doc), "- "+name) {
			t.Errorf("docs/mutations.md does not have the invariant %q: go test ./dispatch/sim -run TestMutations -update", name)
		}
	}
}

const mutationsHead = `# Mutations

The simulator (` + "`dispatch/sim`" + `) is itself put to the test: each of these deliberate defects is built for the test alone
and must be found within some hundred simulated worlds. Some are in the program, some in the simulated hosts, which
then do not keep to what helper and supervisor promise. The last column names the invariant that the first world that
failed found broken; others would have noticed as well. Written by
` + "`go test ./dispatch/sim -run TestMutations -update`" + `.

| defect | in | found by |
|---|---|---|
`
