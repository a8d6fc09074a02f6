package results

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// bad is a hostile name or value of a job.
const bad = "a|b\t\"c\",\nd\\e \x1b[2J{$x_1^2}~&#%<i>`'--\u202e\xff=cmd()"

// run returns a small run with ordinary metrics and a hostile job.
func run() *Table {
	in := TableInput{Names: []string{"acc", "note"}}
	for i, v := range [][2]string{{"0.9130", "fine"}, {"-1e-3", bad}, {"NaN", ""}, {".5", "007"}, {"", "inf"}} {
		job := Result{Job: jobs.ID(i + 1), State: jobs.Succeeded, Host: "melon1", Round: 1,
			Params:  []jobs.Param{{Name: "C", Value: []string{"0.1", "1"}[i%2]}, {Name: "x_[1]", Value: "v"}},
			Outcome: &jobs.Outcome{Started: 1e9, Ended: 1e9 + jobs.Stamp(i*61_500_000_000)}}
		in.Jobs, in.Metrics = append(in.Jobs, job), append(in.Metrics, []string{v[0], v[1]})
	}
	in.Jobs[4].State, in.Jobs[4].Outcome = jobs.Skipped, nil
	return NewTable(in)
}

func write(t *testing.T, s *Table, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden checks each format against testdata/*.golden. Set DCS_GOLDEN=write to rewrite these
// files.
func TestGolden(t *testing.T) {
	s := run()
	grouped, _ := s.Group(Grouping{By: []int{column(t, s, "C")}, Metrics: []int{column(t, s, "acc"), column(t, s, "time")}, Measures: AllMeasures()})
	for name, s := range map[string]*Table{"jobs": s, "groups": grouped} {
		for _, format := range Formats {
			golden(t, name+"."+format, write(t, s, Options{Format: Format(format)}))
		}
	}
	golden(t, "jobs.terminal.csv", write(t, s, Options{Format: CSVFormat, Terminal: true}))
	golden(t, "jobs.terminal.tsv", write(t, s, Options{Format: TSVFormat, Terminal: true}))
	golden(t, "jobs.narrow", write(t, s, Options{Format: TableFormat, Width: 80}))
	golden(t, "jobs.color", write(t, s, Options{Format: TableFormat, Terminal: true, Color: true}))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("DCS_GOLDEN") == "write" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s (%v):\n%s\nwant\n%s", name, err, got, want)
	}
}

func column(t *testing.T, s *Table, name string) int {
	t.Helper()
	i, err := s.Column(name)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestEmpty(t *testing.T) {
	s := NewTable(TableInput{})
	for format, want := range map[Format]string{
		TableFormat: "job  name  state  time  host\n", CSVFormat: "job,name,state,elapsed_seconds,host\n", TSVFormat: "job\tname\tstate\telapsed_seconds\thost\n", JSONLFormat: "",
		MarkdownFormat: "| job | name | state | elapsed\\_seconds | host |\n| --- | --- | --- | --- | --- |\n",
	} {
		if got := write(t, s, Options{Format: format}); got != want {
			t.Errorf("%s: %q", format, got)
		}
	}
	if err := Write(&bytes.Buffer{}, s, Options{Format: "excel"}); err == nil || !strings.Contains(err.Error(), "table, csv, tsv, jsonl, markdown") {
		t.Error(err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriteSaysThatTheDiskIsFull(t *testing.T) {
	for _, format := range Formats {
		if err := Write(full{}, run(), Options{Format: Format(format)}); err == nil || err.Error() != "full" {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// FuzzWrite checks that formats for programs preserve every cell, and that formats for people
// contain nothing that could move a cursor or end a cell.
func FuzzWrite(f *testing.F) {
	for _, s := range []string{bad, "", "=1+1", "NaN", "+07", "a\r\nb", "\\n", "\"", "0.1", "|", "1e999", "é"} {
		f.Add(s, "acc")
		f.Add("1", s)
	}
	f.Fuzz(func(t *testing.T, cell, name string) {
		if len(name) == 0 || name == "job" {
			name = "x"
		}
		s := NewTable(TableInput{Jobs: []Result{{Job: 1, Params: []jobs.Param{{Name: name, Value: cell}}}}})
		at, err := s.Find([]string{"job"})
		if err != nil {
			t.Skip() // the parameter is named job
		}
		param := -1
		for i, c := range s.Columns {
			if c.Role == Param {
				param = i
			}
		}
		s = s.Show(append(at, param))

		rows, err := csv.NewReader(strings.NewReader(write(t, s, Options{Format: CSVFormat}))).ReadAll()
		// As readers that follow RFC 4180 do.
		read := func(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
		if err != nil || len(rows) != 2 || rows[0][1] != read(name) || rows[1][1] != read(cell) {
			t.Fatalf("CSV: %q %v", rows, err)
		}
		lines := strings.Split(strings.TrimSuffix(write(t, s, Options{Format: TSVFormat}), "\n"), "\n")
		if back := strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", `\r`, "\r"); len(lines) != 2 ||
			back.Replace(strings.TrimPrefix(lines[0], "job\t")) != name || back.Replace(strings.TrimPrefix(lines[1], "1\t")) != cell {
			t.Fatalf("TSV: %q", lines)
		}
		var object map[string]any
		line := write(t, s, Options{Format: JSONLFormat})
		if err := json.Unmarshal([]byte(line), &object); err != nil || len(object) != 3 || strings.Count(line, "\n") != 1 {
			t.Fatalf("JSON: %q %v", line, err)
		}
		if v, is := object[name].(string); is && v != cell && query.ValueOf(cell).Kind == query.Text && strings.ToValidUTF8(cell, "") == cell {
			t.Fatalf("JSON: %q became %q", cell, v)
		}
		for format, want := range map[Format]int{TableFormat: 2, MarkdownFormat: 3, CSVFormat: 2, TSVFormat: 2} {
			text := write(t, s, Options{Format: format, Terminal: true})
			if strings.Count(text, "\n") != want || jobs.Clean(strings.ReplaceAll(text, "\n", ""), 0) != strings.ReplaceAll(strings.ReplaceAll(text, "\n", ""), "\t", " ") {
				t.Fatalf("%s: %q", format, text)
			}
			if rest := strings.ReplaceAll(strings.ReplaceAll(text, `\\`, ""), `\|`, ""); format == MarkdownFormat && strings.Count(rest, "|") != 9 {
				t.Fatalf("Markdown: %q", text)
			}
		}
	})
}

func TestJSONNumbers(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "-0.50": "-0.50", "1e5": "1e5", "1E+05": "1E+05", "007": "7", "+1": "1", ".5": "0.5", "5.": "5", "91%": "91", "-": `"-"`,
		"nan": `"NaN"`, "inf": `"Infinity"`, "-Infinity": `"-Infinity"`, "": "null", "1e999": `"1e999"`, "x": `"x"`, "1.5.2": `"1.5.2"`, "123456789012345678901234567890": "123456789012345678901234567890"} {
		if got := string(appendJSON(nil, query.ValueOf(text))); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
