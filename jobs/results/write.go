package results

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// The formats of a table.
const (
	TableFormat    = "table"
	CSVFormat      = "csv"      // RFC 4180 with \n at the end of lines
	TSVFormat      = "tsv"      // a tab, a line break and \ in a cell as \t, \n, \\
	JSONLFormat    = "jsonl"    // one object per row
	MarkdownFormat = "markdown" // GitHub's tables
)

// Formats holds all formats, in the order in which they are explained.
var Formats = []string{TableFormat, CSVFormat, TSVFormat, JSONLFormat, MarkdownFormat}

// Options describe how a table is written.
type Options struct {
	Format string // one of Formats
	// Terminal reports whether w is a terminal. If so, CSV and TSV are also cleaned of control
	// characters. Otherwise their cells are unchanged.
	Terminal bool
	Color    bool // print headings in bold; only in TableFormat
	// Width is the width of a line in TableFormat. Computed numbers get fewer digits, texts are
	// cut, and columns that still do not fit are written below. 0: no limit.
	Width int
}

// Write writes the shown columns of s.
func Write(w io.Writer, s *Table, o Options) error {
	b := bufio.NewWriterSize(w, 64<<10)
	t := &writer{s: s, columns: s.ShownColumns(), o: o, b: b}
	switch o.Format {
	case TableFormat:
		t.writeAligned()
	case CSVFormat:
		t.writeCSV()
	case TSVFormat:
		t.raw(tsvEscapes, func(cells []string) { t.b.WriteString(strings.Join(cells, "\t") + "\n") })
	case JSONLFormat:
		t.writeJSONLines()
	case MarkdownFormat:
		t.writeMarkdown()
	}
	return b.Flush()
}

// writer writes one table. b keeps the first error.
type writer struct {
	s       *Table
	columns []int
	o       Options
	b       *bufio.Writer
	digits  int // digits of computed numbers in TableFormat; 0: the default
}

// maxCell is the maximum number of characters of a cell in TableFormat.
const maxCell = 60

// name returns the heading of a column as shown to people.
func (t *writer) name(column int) string {
	name := t.s.Columns[column].Name
	if t.o.Format == TableFormat {
		name = t.s.Heading(column)
	}
	return text.Clean(name, maxCell)
}

// text returns a cleaned cell for people. If jobs are missing in a number, it is followed by how
// many it is based on.
func (t *writer) text(row, column int) string {
	text := t.value(row, column)
	if b, ok := t.s.CellBasis(row, column); ok && !b.IsComplete() {
		text = cmp.Or(text, "-") + " (" + b.Short() + ")"
	}
	return text
}

// value returns a cleaned cell for people: durations and sizes have units in TableFormat, and means
// and times have six digits. It is "" for nothing. Only TableFormat cuts texts.
func (t *writer) value(row, column int) string {
	v, c := t.s.At(row, column), &t.s.Columns[column]
	switch {
	case v.Kind == query.Absent:
		return ""
	case v.Kind != query.Number && t.o.Format == TableFormat:
		return text.Clean(v.Text, maxCell)
	case v.Kind != query.Number:
		return text.Clean(v.Text, 0)
	case t.o.Format == TableFormat:
		return shorter(c, v, t.digits)
	}
	return FormatDigits(c, v)
}

// shorter returns a number for people, with at most the given digits if it was computed. 0 means no
// limit.
func shorter(c *Column, v query.Value, digits int) string {
	text := FormatForPeople(c, v)
	if digits == 0 || c.Role != Stat || (c.Type == query.DurationType || c.Type == query.SizeType) ||
		v.Number != v.Number || math.Abs(v.Number) >= 1e3 {
		return text // fewer digits would change the integer part
	}
	if short := strconv.FormatFloat(v.Number, 'g', digits, 64); len(short) < len(text) {
		return short
	}
	return text
}

// FormatForPeople formats a number in its unit: times as 2m 05s, sizes as 38 MiB.
func FormatForPeople(c *Column, v query.Value) string {
	switch {
	// Other numbers are not durations.
	case c.Type == query.DurationType && v.Number >= 0 && v.Number < 1e9:
		return text.Duration(time.Duration(v.Number * 1e9))
	case c.Type == query.SizeType && c.Role == Fact && v.Number > 0 && v.Number <= jobs.MemoryFloor:
		return "<" + text.Size(jobs.MemoryFloor) // the exact value is not known
	case c.Type == query.SizeType && v.Number >= 0 && v.Number < 1e18:
		return text.Size(int64(v.Number))
	}
	return FormatDigits(c, v)
}

// FormatDigits formats a number for people as a job wrote it. If it was computed, it has six digits, or more
// if its integer part has more.
func FormatDigits(c *Column, v query.Value) string {
	if c.Role == Stat || c.Type == query.DurationType {
		return round(v, 6)
	}
	return text.Clean(v.String(), maxCell)
}

// round formats a number with at most the given digits, or more if its integer part has more.
func round(v query.Value, digits int) string {
	msg, short := v.String(), strconv.FormatFloat(v.Number, 'g', digits, 64)
	if math.Abs(v.Number) >= math.Pow10(digits)-0.5 { // otherwise it would get an exponent
		short = strconv.FormatFloat(v.Number, 'f', 0, 64)
	}
	if len(short) < len(msg) {
		return short
	}
	return msg
}

// numericColumns returns which columns hold only numbers. These are right-aligned.
func (t *writer) numericColumns() []bool {
	numbers, texts := make([]bool, len(t.columns)), make([]bool, len(t.columns))
	for row := range t.s.Len() {
		for i, c := range t.columns {
			if !texts[i] {
				kind := t.s.At(row, c).Kind
				texts[i] = kind == query.Text
				numbers[i] = !texts[i] && (numbers[i] || kind == query.Number)
			}
		}
	}
	return numbers
}

// cellDigits is the number of digits of a computed number for other programs. A mean has no rounding error in
// them, and the smallest of some numbers, which has as many, is the one that a job wrote.
const cellDigits = 15

// cell returns a cell for other programs.
func (t *writer) cell(row, column int) string {
	v, c := t.s.At(row, column), &t.s.Columns[column]
	if c.Role == Stat && v.Kind == query.Number {
		return round(v, cellDigits)
	}
	return v.Text
}

// raw calls write with the cells of the heading and of each row for other programs, with special
// characters escaped.
func (t *writer) raw(escapes *strings.Replacer, write func(cells []string)) {
	cells := make([]string, len(t.columns))
	for row := -1; row < t.s.Len(); row++ {
		for i, c := range t.columns {
			cells[i] = t.s.Columns[c].Name
			if row >= 0 {
				cells[i] = t.cell(row, c)
			}
			cells[i] = escapes.Replace(cells[i])
			if t.o.Terminal {
				cells[i] = text.Clean(cells[i], 0)
			}
		}
		write(cells)
	}
}

func (t *writer) writeCSV() {
	w := csv.NewWriter(t.b) // without a buffer of its own
	t.raw(strings.NewReplacer(), func(cells []string) {
		if len(cells) == 1 && cells[0] == "" { // readers ignore an empty line
			t.b.WriteString("\"\"\n")
		} else {
			_ = w.Write(cells) // t.b keeps the error
		}
	})
}

var tsvEscapes = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

// writeJSONLines writes one object per row, such as {"v":1,"job":1,…}. Numbers are JSON numbers,
// and missing cells are null. NaN and the infinities, which JSON lacks, are "NaN", "Infinity", and
// "-Infinity".
func (t *writer) writeJSONLines() {
	keys := make([][]byte, len(t.columns))
	for i, c := range t.columns {
		keys[i] = append(AppendText([]byte{','}, t.s.Columns[c].Name), ':')
	}
	version := `{"v":1`
	if slices.ContainsFunc(t.columns, func(c int) bool { return t.s.Columns[c].Name == "v" }) {
		version = `{"dcs.v":1` // no object has a duplicate key
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

// appendJSON adds a cell.
func appendJSON(b []byte, v query.Value) []byte {
	switch {
	case v.Kind == query.Absent:
		return append(b, "null"...)
	case v.Kind == query.Text:
		return AppendText(b, v.Text)
	case math.IsNaN(v.Number):
		return append(b, `"NaN"`...)
	case math.IsInf(v.Number, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(v.Number, -1):
		return append(b, `"-Infinity"`...)
	case json.Valid([]byte(v.Text)):
		return append(b, v.Text...)
	}
	return strconv.AppendFloat(b, v.Number, 'g', -1, 64) // +1, .5, 007, 91% …
}

// markdownEscapes escapes characters with a meaning in a cell of a GitHub table.
var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "<", `\<`, ">", `\>`, "&", `\&`,
	"[", `\[`, "]", `\]`, "!", `\!`, "#", `\#`, "$", `\$`, "@", `\@`, "://", `:\//`, "www.", `www\.`)

func (t *writer) writeMarkdown() {
	numbers := t.numericColumns()
	row := func(cell func(i, c int) string) {
		t.b.WriteString("|")
		for i, c := range t.columns {
			t.b.WriteString(" " + cell(i, c) + " |")
		}
		t.b.WriteByte('\n')
	}
	row(func(_, c int) string { return markdownEscapes.Replace(t.name(c)) })
	row(func(i, _ int) string {
		if numbers[i] {
			return "---:"
		}
		return "---"
	})
	for r := range t.s.Len() {
		row(func(_, c int) string {
			if t.s.At(r, c).Kind == query.Number {
				return t.text(r, c)
			}
			return markdownEscapes.Replace(t.text(r, c))
		})
	}
}

// FormulaWarning returns a sentence if a spreadsheet would treat some of the shown texts as
// formulas. Numbers such as -0.5 and -3 ms are not formulas.
func (s *Table) FormulaWarning() []string {
	cells, first := 0, Tally{}
	for row := range s.rows {
		for _, c := range s.shown {
			v := s.At(row, c)
			if v.Kind != query.Text || strings.IndexByte("=+-@\t\r", v.Text[0]) < 0 {
				continue // the usual case
			}
			if n, _ := ParseMetric(v.Text); n.Kind != query.Number {
				cells++
				first.Add(s.Job(row), v.Text)
			}
		}
	}
	if cells == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s %s like a formula, which a spreadsheet may execute: import the file as text%s",
		text.Plural(cells, "text"), text.Verb(cells, "begins", "begin"), first.example())}
}
