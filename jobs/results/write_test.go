package results

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"dcs-tui/internal/text"
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

// TestFormatsAreGolden checks each format against testdata/*.golden. Set DCS_GOLDEN=write to
// rewrite these files.
func TestFormatsAreGolden(t *testing.T) {
	s := run()
	grouped, _ := group(t, s, Grouping{By: []string{"C"}, Metrics: []string{"acc", "time"}, Measures: AllMeasures()})
	for name, s := range map[string]*Table{"jobs": s, "groups": grouped} {
		t.Run(name, func(t *testing.T) {
			for _, format := range Formats {
				golden(t, name+"."+format, write(t, s, Options{Format: format}))
			}
		})
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

// TestEmptyTableHasAHeading checks each format without jobs.
func TestEmptyTableHasAHeading(t *testing.T) {
	s := NewTable(TableInput{})
	for format, want := range map[string]string{
		TableFormat: "job  name  state  time  host\n", CSVFormat: "job,name,state,elapsed_seconds,host\n",
		TSVFormat: "job\tname\tstate\telapsed_seconds\thost\n", JSONLFormat: "",
		MarkdownFormat: "| job | name | state | elapsed\\_seconds | host |\n| --- | --- | --- | --- | --- |\n",
	} {
		same(t, format, write(t, s, Options{Format: format}), want)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestWriteSaysThatTheDiskIsFull checks that every format returns an error of the writer.
func TestWriteSaysThatTheDiskIsFull(t *testing.T) {
	for _, format := range Formats {
		if err := Write(full{}, run(), Options{Format: format}); err == nil || err.Error() != "full" {
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
		at, err := s.FindColumns([]string{"job"})
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
			back.Replace(strings.TrimPrefix(lines[0], "job\t")) != name ||
			back.Replace(strings.TrimPrefix(lines[1], "1\t")) != cell {
			t.Fatalf("TSV: %q", lines)
		}
		var object map[string]any
		line := write(t, s, Options{Format: JSONLFormat})
		if err := json.Unmarshal([]byte(line), &object); err != nil || len(object) != 3 ||
			strings.Count(line, "\n") != 1 {
			t.Fatalf("JSON: %q %v", line, err)
		}
		if v, is := object[name].(string); is && v != cell && query.ValueOf(cell).Kind == query.Text &&
			strings.ToValidUTF8(cell, "") == cell {
			t.Fatalf("JSON: %q became %q", cell, v)
		}
		for format, want := range map[string]int{TableFormat: 2, MarkdownFormat: 3, CSVFormat: 2, TSVFormat: 2} {
			msg := write(t, s, Options{Format: format, Terminal: true})
			if strings.Count(msg, "\n") != want ||
				text.Clean(strings.ReplaceAll(msg, "\n", ""),
					0) != strings.ReplaceAll(strings.ReplaceAll(msg, "\n", ""), "\t", " ") {
				t.Fatalf("%s: %q", format, msg)
			}
			if rest := strings.ReplaceAll(strings.ReplaceAll(msg, `\\`, ""), `\|`, ""); format == MarkdownFormat &&
				strings.Count(rest, "|") != 9 {
				t.Fatalf("Markdown: %q", msg)
			}
		}
	})
}

// TestNumbersInJSON checks that numbers keep their digits in JSON, and that what JSON cannot hold
// is a text.
func TestNumbersInJSON(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "-0.50": "-0.50", "1e5": "1e5", "1E+05": "1E+05", "007": "7",
		"+1": "1", ".5": "0.5", "5.": "5", "91%": "91", "-": `"-"`,
		"nan": `"NaN"`, "inf": `"Infinity"`, "-Infinity": `"-Infinity"`, "": "null", "1e999": `"1e999"`, "x": `"x"`,
		"1.5.2": `"1.5.2"`, "123456789012345678901234567890": "123456789012345678901234567890"} {
		t.Run(text, func(t *testing.T) {
			if got := string(appendJSON(nil, query.ValueOf(text))); got != want || !json.Valid([]byte(got)) {
				t.Errorf("%q: %s, want %s", text, got, want)
			}
		})
	}
}

// TestFormulasOfSpreadsheetsAreReported checks that texts that a spreadsheet would execute are
// reported, and that numbers are not (X9).
func TestFormulasOfSpreadsheetsAreReported(t *testing.T) {
	of := func(values ...string) []string {
		in := TableInput{Names: []string{"x"}}
		for _, v := range values {
			in.solved(nil, v)
		}
		s := NewTable(in)
		return s.Show([]int{columnIndex(t, s, "x")}).FormulaWarning()
	}
	if got := of("-0.5", "+1e3", "-inf", "a=b", "", "-3%"); got != nil {
		t.Errorf("notes on harmless texts: got %q, want none", got)
	}
	if got := of("ok", "=1+1", "@x", "-2+3", "\t=1", "+cmd"); len(got) != 1 ||
		got[0] != `5 texts begin like a formula, which a spreadsheet may execute: `+
			`import the file as text (such as job 2: "=1+1")` {
		t.Errorf("notes on formulas: got %q, want one that counts 5", got)
	}
}

// TestWidePivotsFitTheTerminal checks that a pivot that is wider than the terminal is printed with
// fewer digits and in pages of columns, each with the names of the rows. Elsewhere it is printed in
// full (X5, E3).
func TestWidePivotsFitTheTerminal(t *testing.T) {
	in := TableInput{Names: []string{"acc"}}
	for i := range 120 { // a long mean in each cell of a grid of 3 x 40
		in.solved(params("C", fmt.Sprint(i/40), "gamma", fmt.Sprint(i%40)), fmt.Sprint(1/float64(i+3)))
	}
	p, _ := pivot(t, NewTable(in), PivotInput{Down: "C", Across: "gamma", Metric: "acc", Measure: Mean})
	draw := func(width int) string { return write(t, p.Table(false), Options{Format: TableFormat, Width: width}) }
	if whole := draw(0); !strings.Contains(whole, "0.333333") || strings.Contains(whole, "\n\n") {
		t.Errorf("what is no terminal lacks digits, or has pages:\n%s", whole)
	}
	for _, width := range []int{40, 80, 132} {
		text := draw(width)
		if !strings.Contains(text, "0.333 ") && !strings.Contains(text, "0.333\n") ||
			strings.Contains(text, "0.333333") {
			t.Errorf("width %d: digits are as many as before\n%s", width, text)
		}
		seen := map[string]bool{}
		for _, page := range strings.Split(text, "\n\n") {
			lines := strings.Split(strings.TrimRight(page, "\n"), "\n")
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); n > width {
					t.Errorf("%d cells in a line of %d: %s", n, width, line)
				}
			}
			if len(lines) != 4 || !strings.HasPrefix(lines[0], "C") {
				t.Fatalf("a page has no names:\n%s", page)
			}
			for _, word := range strings.Fields(lines[0])[1:] {
				seen[word] = true
			}
		}
		for i := range 40 {
			if name := fmt.Sprint("gamma=", i); !seen[name] {
				t.Errorf("width %d: the column %s is missing: %v", width, name, seen)
			}
		}
	}
}

// TestEveryColumnIsOnOnePage checks that every column is on one page and fixed columns are on each.
// A page is wider than the limit only if a single column is.
func TestEveryColumnIsOnOnePage(t *testing.T) {
	for _, c := range []struct {
		widths     []int
		stay, room int
		want       [][]int
	}{
		{[]int{1, 2, 3}, 1, 0, [][]int{{0, 1, 2}}},
		{[]int{1, 2, 3}, 1, 10, [][]int{{0, 1, 2}}},
		{[]int{1, 2, 3}, 1, 9, [][]int{{0, 1}, {0, 2}}},
		{[]int{1, 2, 3, 4}, 2, 9, [][]int{{0, 1, 2}, {0, 1, 3}}},
		{[]int{50, 60, 70}, 1, 9, [][]int{{0, 1}, {0, 2}}},
		{[]int{5}, 1, 2, [][]int{{0}}},
		{nil, 1, 2, nil},
	} {
		if got := pages(c.widths, c.stay, c.room); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c, got, c.want)
		}
	}
}

// TestComputedNumbersLoseNoIntegerPart checks that a computed number has six digits, or as many as its
// integer part, and that a number of a job is what the job wrote.
func TestComputedNumbersLoseNoIntegerPart(t *testing.T) {
	mean, own := &Column{Role: Stat}, &Column{Role: Metric}
	for n, want := range map[float64]string{0.1 + 0.2: "0.3", 1.0 / 3: "0.333333", 1e9 / 7: "142857143",
		12345678: "12345678",
		999999.7: "1000000", 99999.96: "100000", 1e-9 / 3: "3.33333e-10", 2e200 / 3: "6.666666666666667e+199"} {
		same(t, "mean", FormatDigits(mean, query.NumberValue(n)), want)
		same(t, "metric", FormatDigits(own, query.NumberValue(n)), query.NumberValue(n).String())
	}
}

// TestCellsForProgramsHaveAllDigits checks that CSV has the smallest and the largest number of a group as the
// jobs wrote them, and no rounding error in the last digit of a mean.
func TestCellsForProgramsHaveAllDigits(t *testing.T) {
	stats := StatsOf([]float64{1764540000.125, 1764540000.875})
	small := StatsOf([]float64{0.1, 0.2, 0.3})
	for _, c := range []struct {
		of   Stats
		m    Measure
		want string
	}{
		{stats, Min, "1764540000.125"}, {stats, Max, "1764540000.875"}, {stats, Mean, "1764540000.5"},
		{small, Mean, "0.2"}, {small, Max, "0.3"}, {StatsOf([]float64{0.99999951}), Min, "0.99999951"},
		{StatsOf([]float64{1 << 53}), Max, "9007199254740992"},
	} {
		same(t, c.m.String(), round(c.of.Value(c.m), cellDigits), c.want)
	}
}
