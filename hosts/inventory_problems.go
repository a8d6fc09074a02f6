package hosts

import (
	"fmt"
	"sort"
	"strings"
)

// Problem is one thing wrong with an inventory file.
type Problem struct {
	File string
	Line int // from 1; 0: the file as a whole
	Text string
}

// String gives "file:line: text".
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Problems is everything wrong with an inventory file, in order of lines.
type Problems []Problem

// maxShown bounds the text of Problems: a wrong file can be wrong 10,000 times.
const maxShown = 20

// Error gives a line a problem, at most 20 of them.
func (p Problems) Error() string {
	var b strings.Builder
	for i, one := range p {
		if i == maxShown {
			fmt.Fprintf(&b, "\n%s: and %d more", one.File, len(p)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(one.String())
	}
	return b.String()
}

// notes collects problems and warnings while a file is read.
type notes struct {
	file     string
	problems Problems
	warnings Problems
}

func (n *notes) bad(line int, format string, args ...any) {
	n.problems = append(n.problems, Problem{n.file, line, fmt.Sprintf(format, args...)})
}

func (n *notes) warn(line int, format string, args ...any) {
	n.warnings = append(n.warnings, Problem{n.file, line, fmt.Sprintf(format, args...)})
}

func (n *notes) err() error {
	if len(n.problems) == 0 {
		return nil
	}
	sort.SliceStable(n.problems, func(i, j int) bool { return n.problems[i].Line < n.problems[j].Line })
	return n.problems
}

func (n *notes) warningLines() []string {
	sort.SliceStable(n.warnings, func(i, j int) bool { return n.warnings[i].Line < n.warnings[j].Line })
	var lines []string
	for _, w := range n.warnings {
		lines = append(lines, w.String())
	}
	return lines
}
