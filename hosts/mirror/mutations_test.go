package mirror

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
)

// mutations are deliberate defects of the protocol. Each old text occurs once in its file.
var mutations = []struct{ name, file, old, new string }{
	{"the dispatcher goes alone without votes", "primary.go",
		"switch won, missing := g.options.Polls.decide(g.ctx, &g.description, VoteAlone); won {",
		"switch won, missing := VoteAlone, []string(nil); won {"},
	{"a takeover needs only half of the votes", "votes.go", "return n/2 + 1", "return max(1, n/2)"},
	{"the receiver acknowledges before the fsync", "receiver.go", "return f.Sync()", "return nil"},
	{"the mirror is armed, and nothing waits for it", "primary.go", "p.isAwaited = true", "p.isAwaited = false"},
	{"a second vote overwrites the first", "votes.go", "if b.Choice, err = createOrRead(",
		"_ = disk.Remove(filepath.Join(dir, votePrefix+b.Generation))\n\tif b.Choice, err = createOrRead("},
}

// TestMutations checks that TestSeeds finds each of the mutations, and that the mutations fit the
// code.
func TestMutations(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		text, err := os.ReadFile(m.file)
		if err != nil || strings.Count(string(text), m.old) != 1 {
			t.Fatalf("%s: %q does not occur once in %s (%v)", m.name, m.old, m.file, err)
		}
	}
	polltest.Long(t)
	for _, m := range mutations {
		dir := t.TempDir()
		sick, list, bin := filepath.Join(dir, "sick.go"), filepath.Join(dir, "overlay.json"),
			filepath.Join(dir, "mirror.test")
		text, _ := os.ReadFile(m.file)
		overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, m.file): sick}})
		for path, content := range map[string]string{sick: strings.Replace(string(text), m.old, m.new, 1),
			list: string(overlay)} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o",
			bin, ".").CombinedOutput(); err != nil {
			t.Fatalf("%s: it does not build: %v\n%s", m.name, err, out)
		}
		out, err := exec.Command(bin, "-test.run", "^TestSeeds$", "-seeds", "400").CombinedOutput()
		said := string(out)
		if err == nil || !strings.Contains(said, "and lacks") && !strings.Contains(said, "has begun") &&
			!strings.Contains(said, "nothing is launched") {
			t.Errorf("%s: not found (%v)\n%s", m.name, err, said[max(0, len(said)-2000):])
			continue
		}
		seed, _, _ := strings.Cut(said[strings.Index(said, "seed "):], ":")
		t.Logf("%s: %s", m.name, seed)
	}
}
