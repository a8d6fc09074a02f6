package sim

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var (
	updateDoc     = flag.Bool("update", false, "write docs/internals/mutations.md")
	someMutations = flag.String("mutation", "",
		"only the defects with this in their names; docs/internals/mutations.md is left alone")
)

// mutation is a deliberate defect and how to find it.
type mutation struct {
	name       string
	file       string // path in the module
	edits      []edit
	seeds      int  // number of worlds to try; 0: 600
	isBattered bool // all worlds are battered (damage.go)
	cuts       bool // only worlds in which journals end early (faultkinds.go)
	badHosts   bool // only worlds of bad hosts (blame.go)
}

type edit struct{ old, new string }

// apply returns the text of the file with the defect applied.
func (wd *mutation) apply(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, wd.file))
	if err != nil {
		return "", err
	}
	text := string(b)
	for _, e := range wd.edits {
		if n := strings.Count(text, e.old); n != 1 {
			return "", fmt.Errorf("%s has this text %d times, not once; "+
				"correct dispatch/sim/mutations_table_test.go:\n%s", wd.file, n, e.old)
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return text, nil
}

const mutationsDoc = "../../docs/internals/mutations.md"

// TestMutations checks that the simulator finds every deliberate defect. An invariant that no
// defect breaks would prove nothing.
func TestMutations(t *testing.T) {
	if testing.Short() || raceEnabled || !strings.Contains(flag.Lookup("test.run").Value.String(), "Mutations") {
		t.Skip("runs the simulator once for each defect: make mutations")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := buildMutations(root, t.TempDir(), mutations)
	if err != nil {
		t.Fatal(err)
	}
	caught := make([]string, len(mutations))
	var wg sync.WaitGroup
	free := make(chan int, runtime.GOMAXPROCS(0))
	for i := range mutations {
		if !strings.Contains(mutations[i].name, *someMutations) {
			continue
		}
		wg.Go(func() {
			free <- i
			defer func() { <-free }()
			caught[i] = mutations[i].try(t, bin, i+1)
		})
	}
	wg.Wait()
	if *updateDoc && !t.Failed() && *someMutations == "" {
		writeDoc(t, caught)
	}
}

// TestMutationsTable checks, without a build, that every defect still fits its file, and that
// docs/internals/mutations.md lists every defect and every invariant. These mistakes make TestMutations fail
// late. Under which invariant a defect is listed is not compared, because any change of the core may
// change which invariant notices it first.
func TestMutationsTable(t *testing.T) {
	if *updateDoc {
		t.Skip("docs/internals/mutations.md is being written")
	}
	doc, err := os.ReadFile(mutationsDoc)
	if err != nil {
		t.Fatal(err)
	}
	wantListed := func(t *testing.T, text string) {
		t.Helper()
		if !strings.Contains(string(doc), text) {
			t.Errorf("docs/internals/mutations.md lacks %q: go test ./dispatch/sim -run TestMutations -update", text)
		}
	}
	for _, wd := range mutations {
		t.Run(wd.name, func(t *testing.T) {
			if _, err := wd.apply("../.."); err != nil {
				t.Error(err)
			}
			wantListed(t, fmt.Sprintf("\n  - %s (`%s`)", wd.name, wd.file))
		})
	}
	for _, name := range Invariants {
		wantListed(t, "\n- "+name)
	}
}

var verdict = regexp.MustCompile(`seed (\d+): (.+?) at [0-9hms.µn]+: `)

// try runs the simulator that buildMutations built, with the defect of this number. It returns the
// name of the invariant that was broken in the first failing world.
func (wd *mutation) try(t *testing.T, bin string, number int) string {
	seeds := wd.seeds
	if seeds == 0 {
		seeds = 600
	}
	run := exec.Command(bin, "-test.run", "^TestSeeds$", "-test.timeout", "1h", "-seeds", fmt.Sprint(seeds),
		"-most", "1")
	if wd.isBattered {
		run.Args = append(run.Args, "-battered")
	}
	if wd.cuts {
		run.Args = append(run.Args, "-cuts")
	}
	if wd.badHosts {
		run.Args = append(run.Args, "-bad-hosts")
	}
	run.Env = append(os.Environ(), "GOMAXPROCS=1", mutationEnv+"="+strconv.Itoa(number))
	out, err := run.CombinedOutput()
	m := verdict.FindSubmatch(out)
	switch {
	case err == nil:
		t.Errorf("%s: %d worlds, and nothing was found", wd.name, seeds)
	case m == nil || !slices.Contains(Invariants, string(m[2])):
		t.Errorf("%s: it failed, and not by an invariant: %v\n%s", wd.name, err, out[max(0, len(out)-3000):])
	default:
		t.Logf("%-60s seed %4s: %s", wd.name, m[1], m[2])
		return string(m[2])
	}
	return ""
}

// writeDoc writes docs/internals/mutations.md. caught holds, for each defect, the invariant that noticed it.
func writeDoc(t *testing.T, caught []string) {
	var b strings.Builder
	b.WriteString(mutationsHead)
	for _, name := range Invariants {
		b.WriteString("- " + name + "\n")
		for i, wd := range mutations {
			if caught[i] == name {
				fmt.Fprintf(&b, "  - %s (`%s`)\n", wd.name, wd.file)
			}
		}
	}
	if err := os.WriteFile(mutationsDoc, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

const mutationsHead = `# Mutations

The simulator (` + "`dispatch/sim`" + `) is tested, too. Each of these deliberate defects exists in the test
alone, and the simulator must find it within 600 simulated worlds (rare ones: within 3,000). Some
defects are in the program. Others are in the simulated hosts, which then break what helper and
supervisor promise. The list has all invariants, and under each the defects that broke it in the
first world that failed; others would have noticed them as well. This page is written by
` + "`go test ./dispatch/sim -run TestMutations -update`" + `.

`
