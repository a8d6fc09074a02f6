package export

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/results/sheet"
)

// Format is a way to write a table.
type Format string

// The formats.
const (
	Table    Format = "table"
	CSV      Format = "csv"      // RFC 4180 with \n at the end of lines
	TSV      Format = "tsv"      // a tab, a line break and \ in a cell as \t, \n, \\
	JSONL    Format = "jsonl"    // an object a row
	Markdown Format = "markdown" // GitHub's tables
	LaTeX    Format = "latex"    // a tabular, for booktabs
)

// Formats are all of them, in the order in which they are explained.
var Formats = []string{string(Table), string(CSV), string(TSV), string(JSONL), string(Markdown), string(LaTeX)}

// Options say how to write.
type Options struct {
	Format Format
	// Terminal says that w is one: then CSV and TSV, too, are cleaned of what could
	// move its cursor. To a file or a pipe their cells go as they are.
	Terminal bool
	Color    bool // the heading is bold; of Table alone
	// Width is how many cells a line of Table has: computed numbers get fewer digits, texts
	// are cut, and columns that there is still no room for come below. 0: no limit.
	Width int
}

// Write writes the columns of s that are to be shown.
func Write(w io.Writer, s *sheet.Sheet, o Options) error {
	b := bufio.NewWriterSize(w, 64<<10)
	t := &table{s: s, columns: s.Shown(), o: o, b: b}
	var err error
	switch o.Format {
	case Table:
		t.aligned()
	case CSV:
		err = t.csv()
	case TSV:
		t.tsv()
	case JSONL:
		t.jsonl()
	case Markdown:
		t.markdown()
	case LaTeX:
		t.latex()
	default:
		err = fmt.Errorf("there is no format %q; there are %s", jobs.Clean(string(o.Format), 40), strings.Join(Formats, ", "))
	}
	if err != nil {
		return err
	}
	return b.Flush()
}

// table is one that is being written. The first error of b sticks to it.
type table struct {
	s       *sheet.Sheet
	columns []int
	o       Options
	b       *bufio.Writer
	digits  int // of computed numbers in a Table; 0: as many as people want
}

// maxCell is how many characters of a cell people are shown.
const maxCell = 60

// name is a column's heading for people.
func (t *table) name(column int) string {
	name := t.s.Columns[column].Name
	if t.o.Format == Table {
		name = t.s.Heading(column)
	}
	return jobs.Clean(name, maxCell)
}

// text is a cell for people, cleaned: durations and sizes in units (in a table on the
// screen), means and times with six digits; "" for nothing. What goes into a document is
// not cut.
func (t *table) text(row, column int) string {
	v, c := t.s.At(row, column), &t.s.Columns[column]
	switch {
	case v.Kind == sheet.Nothing:
		return ""
	case v.Kind != sheet.Number && t.o.Format == Table:
		return jobs.Clean(v.Text, maxCell)
	case v.Kind != sheet.Number:
		return jobs.Clean(v.Text, 0)
	case t.o.Format == Table:
		return shorter(c, v, t.digits)
	}
	return Digits(c, v)
}

// shorter is a number for people, of a computed one at most so many digits; 0: as it is.
func shorter(c *sheet.Column, v sheet.Value, digits int) string {
	text := ForPeople(c, v)
	if digits == 0 || c.Role != sheet.Stat || c.Unit != sheet.None || v.Number != v.Number || math.Abs(v.Number) >= 1e3 {
		return text // beyond, digits before the point would go
	}
	if short := strconv.FormatFloat(v.Number, 'g', digits, 64); len(short) < len(text) {
		return short
	}
	return text
}

// ForPeople is a number in its unit: times as 2m 05s, sizes as 38 MiB.
func ForPeople(c *sheet.Column, v sheet.Value) string {
	switch {
	case c.Unit == sheet.Seconds && v.Number >= 0 && v.Number < 1e9: // else it is no duration
		return results.HumanDuration(time.Duration(v.Number * 1e9))
	case c.Unit == sheet.Bytes && c.Role == sheet.Fact && v.Number > 0 && v.Number <= jobs.MemoryFloor:
		return "<" + results.HumanBytes(jobs.MemoryFloor) // all that is known
	case c.Unit == sheet.Bytes && v.Number >= 0 && v.Number < 1e18:
		return results.HumanBytes(int64(v.Number))
	}
	return Digits(c, v)
}

// Digits is a number as people want it: as a job wrote it, and with at most six digits
// where it was computed.
func Digits(c *sheet.Column, v sheet.Value) string {
	if (c.Role == sheet.Stat || c.Unit == sheet.Seconds) && len(v.Text) > 7 {
		return sixDigits(v)
	}
	return jobs.Clean(v.Text, maxCell)
}

func sixDigits(v sheet.Value) string {
	short := strconv.FormatFloat(v.Number, 'g', 6, 64)
	if len(short) < len(v.Text) {
		return short
	}
	return v.Text
}

// numeric says which columns hold numbers alone: they are written right-aligned.
func (t *table) numeric() []bool {
	numbers := make([]bool, len(t.columns))
	for i, c := range t.columns {
		some := false
		numbers[i] = true
		for row := 0; row < t.s.Len() && numbers[i]; row++ {
			switch t.s.At(row, c).Kind {
			case sheet.Number:
				some = true
			case sheet.Text:
				numbers[i] = false
			}
		}
		numbers[i] = numbers[i] && some
	}
	return numbers
}

// raw is a cell for programs.
func (t *table) raw(row, column int) string { return t.plain(t.s.At(row, column).Text) }

func (t *table) plain(text string) string {
	if t.o.Terminal {
		return jobs.Clean(text, 0)
	}
	return text
}

func (t *table) csv() error {
	w := csv.NewWriter(t.b)
	cells := make([]string, len(t.columns))
	for i, c := range t.columns {
		cells[i] = t.plain(t.s.Columns[c].Name)
	}
	if err := w.Write(cells); err != nil {
		return err
	}
	for row := range t.s.Len() {
		for i, c := range t.columns {
			cells[i] = t.raw(row, c)
		}
		if len(cells) == 1 && cells[0] == "" { // readers take an empty line for no row
			w.Flush()
			t.b.WriteString("\"\"\n")
			continue
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

var tsvEscapes = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

func (t *table) tsv() {
	for row := -1; row < t.s.Len(); row++ {
		for i, c := range t.columns {
			if i > 0 {
				t.b.WriteByte('\t')
			}
			cell := t.s.Columns[c].Name
			if row >= 0 {
				cell = t.s.At(row, c).Text
			}
			t.b.WriteString(t.plain(tsvEscapes.Replace(cell)))
		}
		t.b.WriteByte('\n')
	}
}

// jsonl writes {"v":1,"job":1,…} a row: numbers as numbers; NaN and the infinities,
// which JSON has not, as "NaN", "Infinity", "-Infinity"; nothing as null.
func (t *table) jsonl() {
	keys := make([][]byte, len(t.columns))
	for i, c := range t.columns {
		keys[i] = append(results.AppendText([]byte{','}, t.s.Columns[c].Name), ':')
	}
	version := `{"v":1`
	if slices.ContainsFunc(t.columns, func(c int) bool { return t.s.Columns[c].Name == "v" }) {
		version = `{"dcs.v":1` // no object has a key twice
	}
	var line []byte
	for row := range t.s.Len() {
		line = append(line[:0], version...)
		for i, c := range t.columns {
			line = appendJSON(append(line, keys[i]...), t.s.At(row, c))
		}
		t.b.Write(append(line, '}', '\n'))
	}
}
