package results

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPythonReadsIt checks that Python's csv and json modules can parse the files (X9).
func TestPythonReadsIt(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	s := run()
	s = s.Show([]int{column(t, s, "job"), column(t, s, "C"), column(t, s, "acc"), column(t, s, "note")})
	dir := t.TempDir()
	for _, f := range []Format{CSVFormat, TSVFormat, JSONLFormat} {
		if err := os.WriteFile(filepath.Join(dir, string(f)), []byte(write(t, s, Options{Format: f})), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one := s.Show([]int{column(t, s, "acc")})
	if err := os.WriteFile(filepath.Join(dir, "one"), []byte(write(t, one, Options{Format: CSVFormat})), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad"), []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", `
import csv, json
bad = open("bad", "rb").read().decode(errors="surrogateescape")
want = [["job", "C", "acc", "note"], ["1", "0.1", "0.9130", "fine"], ["2", "1", "-1e-3", bad],
        ["3", "0.1", "NaN", ""], ["4", "1", ".5", "007"], ["5", "0.1", "", "inf"]]
text = lambda name: open(name, encoding="utf-8", errors="surrogateescape", newline="")
assert list(csv.reader(text("csv"), strict=True)) == want, list(csv.reader(text("csv")))
assert [r["acc"] for r in csv.DictReader(text("one"))] == [r[2] for r in want[1:]], "a job without a metric is a row"
back = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\\\": "\\"}
def cell(s):
    out = ""
    while s:
        n = 2 if s[0] == "\\" else 1
        out, s = out + back.get(s[:n], s[:n]), s[n:]
    return out
got = [[cell(c) for c in line.rstrip("\n").split("\t")] for line in text("tsv")]
assert got == want, got
rows = [json.loads(line) for line in text("jsonl")]
assert [list(r) for r in rows] == [["v"] + want[0]] * 5, rows
assert [r["acc"] for r in rows] == [0.913, -0.001, "NaN", 0.5, None], rows
assert [r["note"] for r in rows] == ["fine", open("bad", "rb").read().decode(errors="replace"), None, 7, "Infinity"], rows
assert [r["C"] for r in rows] == [0.1, 1, 0.1, 1, 0.1] and [r["job"] for r in rows] == [1, 2, 3, 4, 5]
`)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
