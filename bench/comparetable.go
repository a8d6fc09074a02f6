package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// pageWidth is how long the lines of a page may be.
const pageWidth = 100

// comparison is the table of `-compare`: a row for each program and a column for each measurement.
type comparison struct {
	columns []string
	rows    []string
	cells   map[cellName]string
	remarks []string // sentences below the table
	loads   []float64
}

// cellName is the place of a cell.
type cellName struct{ row, column string }

func newComparison(columns ...string) *comparison {
	return &comparison{columns: columns, cells: map[cellName]string{}}
}

// set enters a cell. Rows are in the order in which they were first set.
func (c *comparison) set(row, column, text string) {
	if !slices.Contains(c.rows, row) {
		c.rows = append(c.rows, row)
	}
	c.cells[cellName{row, column}] = text
}

// used returns the columns that have a cell.
func (c *comparison) used() (list []string) {
	for _, column := range c.columns {
		for _, row := range c.rows {
			if c.cells[cellName{row, column}] != "" {
				list = append(list, column)
				break
			}
		}
	}
	return list
}

// remark adds a sentence below the table: what was left out, or what failed.
func (c *comparison) remark(format string, args ...any) {
	c.remarks = append(c.remarks, fmt.Sprintf(format, args...))
}

// text returns the table in Markdown, below a line that describes when and where it was measured. "–"
// stands for what a program does not do or what does not apply to it.
func (c *comparison) text(measured string) string {
	if len(c.loads) > 0 {
		measured += fmt.Sprintf(" Load before each cell, the comparison itself included: %.1f to %.1f, median %.1f.",
			slices.Min(c.loads), slices.Max(c.loads), median(c.loads))
	}
	columns := c.used()
	var b strings.Builder
	b.WriteString(ansi.Wordwrap(measured, pageWidth, "") + "\n\n| program |")
	for _, column := range columns {
		b.WriteString(" " + column + " |")
	}
	b.WriteString("\n" + strings.Repeat("|---", 1+len(columns)) + "|\n")
	for _, row := range c.rows {
		b.WriteString("| " + row + " |")
		for _, column := range columns {
			text := cmp.Or(c.cells[cellName{row, column}], "–")
			b.WriteString(" " + strings.ReplaceAll(text, "|", `\|`) + " |")
		}
		b.WriteString("\n")
	}
	for _, line := range c.remarks {
		b.WriteString("\n" + ansi.Wordwrap(line, pageWidth, "") + "\n")
	}
	return b.String()
}

// The markers in a page between which the table stands.
const (
	tableBegins = "<!-- keys of make compare -->\n"
	tableEnds   = "<!-- end of make compare -->\n"
)

func replaceTable(page, table string) (string, error) {
	before, rest, hasBegin := strings.Cut(page, tableBegins)
	_, after, hasEnd := strings.Cut(rest, tableEnds)
	if !hasBegin || !hasEnd {
		return "", errors.New("the page does not have the two markers of the table")
	}
	return before + tableBegins + strings.TrimSpace(table) + "\n" + tableEnds + after, nil
}

func writeTable(path, table string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page, err := replaceTable(string(old), table)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(page), 0o644)
}

// span formats the median of repetitions and, if there are several, the smallest and the largest.
func span(format string, values []float64) string {
	if len(values) == 0 {
		return ""
	}
	text := fmt.Sprintf(format, median(values))
	low, high := fmt.Sprintf(format, slices.Min(values)), fmt.Sprintf(format, slices.Max(values))
	if low != high {
		text += " (" + low + "–" + high + ")"
	}
	return text
}

// longCell is the time of a measurement that is not repeated.
const longCell = 20 * time.Second

// repeated calls measure, which returns a figure and how long it took to measure it. Short
// measurements are repeated, and again if the figures differ by so much that something else has
// probably disturbed them.
func repeated(rounds int, measure func() (float64, time.Duration, error)) (values []float64, err error) {
	for len(values) < rounds || len(values) < 2*rounds && isDisturbed(values) {
		value, took, err := measure()
		if err != nil {
			return nil, err
		}
		values = append(values, value)
		if took >= longCell {
			break
		}
	}
	return values, nil
}

// isDisturbed reports whether repetitions of one measurement differ by more than a quarter.
func isDisturbed(values []float64) bool { return slices.Max(values) > 1.25*slices.Min(values) }

// tally is what became of jobs that each note their start and their end.
type tally struct {
	jobs     int
	lost     int // jobs that have not ended
	started  int // jobs that started more than once
	finished int // jobs that ended more than once
}

// tallyOf counts the jobs 1 to jobs. The texts have a line with the number of a job for each start
// and each end.
func tallyOf(jobs int, starts, ends string) tally {
	t := tally{jobs: jobs}
	started, finished := map[string]int{}, map[string]int{}
	for _, number := range strings.Fields(starts) {
		started[number]++
	}
	for _, number := range strings.Fields(ends) {
		finished[number]++
	}
	for i := range jobs {
		number := fmt.Sprint(i + 1)
		if finished[number] == 0 {
			t.lost++
		}
		if started[number] > 1 {
			t.started++
		}
		if finished[number] > 1 {
			t.finished++
		}
	}
	return t
}

func (t tally) String() string {
	text := fmt.Sprintf("all %d", t.jobs)
	if t.lost > 0 {
		text = fmt.Sprintf("%d of %d, %d lost", t.jobs-t.lost, t.jobs, t.lost)
	}
	switch {
	case t.finished > 0:
		text += fmt.Sprintf("; %d ran twice", t.finished)
	case t.started > 0:
		text += fmt.Sprintf("; %d started again", t.started)
	}
	return text
}
