package cli

import (
	"path"
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// columnGap is the number of blanks between the columns of a table.
const columnGap = 2

// pagePrinter renders a page of docs/, which uses a small part of Markdown, for a terminal.
type pagePrinter struct {
	paint  func(color, s string) string
	help   func(file string) string // the name of a page in the help, or ""
	width  int
	rows   []string
	text   string // of the present paragraph or list item
	prefix string // of its first row
	table  [][]string
}

var (
	listItem  = regexp.MustCompile(`^ *(?:[-*]|\d+\.) `)
	separator = regexp.MustCompile(`^\|(?: *:?-+:? *\|)+$`)
	// span matches code, bold text, pictures, links, addresses, and escaped characters.
	span = regexp.MustCompile(
		"`[^`]+`" + `|\*\*.+?\*\*|!?\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^()\s]+)\)|<https?://[^>]+>|\\([\\|*<])`,
	)
	cell = regexp.MustCompile(`(?:[^|\\]|\\.)*`)
)

// render returns the page in rows of at most width columns, except for code.
func (p *pagePrinter) render(page string) string {
	code := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			p.flush()
			code = !code
		case code:
			p.rows = append(p.rows, "    "+p.paint(cyan, line))
		case strings.HasPrefix(trimmed, "|"):
			p.flushText()
			if !separator.MatchString(trimmed) {
				p.table = append(p.table, p.cells(trimmed))
			}
		case trimmed == "":
			p.flush()
			p.rows = append(p.rows, "")
		case strings.HasPrefix(trimmed, "#"):
			p.flush()
			p.rows = append(p.rows, wrapIndented(p.words(bold, strings.TrimLeft(trimmed, "# ")), p.width, 0))
		case listItem.MatchString(line):
			p.flush()
			p.prefix = listItem.FindString(line)
			p.text = line[len(p.prefix):]
		case strings.HasPrefix(trimmed, "!["):
		default:
			p.flushTable()
			p.text = strings.TrimSpace(p.text + " " + trimmed)
		}
	}
	p.flush()
	return strings.Trim(strings.Join(p.rows, "\n"), "\n") + "\n"
}

func (p *pagePrinter) flush() {
	p.flushText()
	p.flushTable()
}

// flushText ends a paragraph or a list item.
func (p *pagePrinter) flushText() {
	if p.text != "" {
		p.rows = append(p.rows, wrapIndented(p.prefix+p.inline(p.text), p.width, len(p.prefix)))
	}
	p.text, p.prefix = "", ""
}

// flushTable ends a table. Its widest columns are narrowed until it fits, if possible not below their
// longest word.
func (p *pagePrinter) flushTable() {
	var widths, longest []int
	total := -columnGap
	for i, row := range p.table {
		for j, cell := range row {
			row[j] = p.inline(cell)
			if i == 0 {
				row[j] = p.words(bold, row[j])
			}
			if j == len(widths) {
				widths, longest = append(widths, 0), append(longest, 0)
				total += columnGap
			}
			for word := range strings.FieldsSeq(row[j]) {
				longest[j] = max(longest[j], ansi.StringWidth(word))
			}
			widths[j] = max(widths[j], ansi.StringWidth(row[j]))
		}
	}
	for _, w := range widths {
		total += w
	}
	for ; total > p.width; total-- {
		widest := -1
		for j, w := range widths {
			minWidth := min(longest[j], p.width/len(widths)-columnGap)
			if w > minWidth && (widest < 0 || w > widths[widest]) {
				widest = j
			}
		}
		widths[widest]--
	}
	for _, row := range p.table {
		if strings.Join(row, "") != "" {
			p.rows = append(p.rows, tableRow(row, widths)...)
		}
	}
	p.table = nil
}

// tableRow returns the rows on the screen of a row of a table.
func tableRow(cells []string, widths []int) (rows []string) {
	at := 0
	for j, cell := range cells {
		i := 0
		for row := range strings.SplitSeq(wrapIndented(cell, widths[j], 0), "\n") {
			if ansi.StringWidth(row) > widths[j] {
				row = ansi.Hardwrap(ansi.Strip(row), widths[j], true)
			}
			for part := range strings.SplitSeq(row, "\n") {
				if i == len(rows) {
					rows = append(rows, "")
				}
				rows[i] += strings.Repeat(" ", max(at-ansi.StringWidth(rows[i]), 0)) + part
				rows[i] = strings.TrimRight(rows[i], " ")
				i++
			}
		}
		at += widths[j] + columnGap
	}
	return rows
}

func (p *pagePrinter) cells(row string) []string {
	var cells []string
	for rest := strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|") + "|"; rest != ""; {
		c := cell.FindString(rest)
		cells = append(cells, strings.ReplaceAll(strings.TrimSpace(c), `\|`, "|"))
		rest = rest[len(c)+1:]
	}
	return cells
}

// inline renders the spans of a text.
func (p *pagePrinter) inline(s string) string {
	return span.ReplaceAllStringFunc(s, func(s string) string {
		m := span.FindStringSubmatch(s)
		switch label, target := m[1], m[2]; {
		case strings.HasPrefix(s, "`"):
			return p.code(s)
		case strings.HasPrefix(s, "**"):
			return p.words(bold, p.inline(strings.Trim(s, "*")))
		case strings.HasPrefix(s, "<"):
			return strings.Trim(s, "<>")
		case m[3] != "":
			return m[3]
		case strings.Contains(target, "://"):
			return p.inline(label) + " (" + target + ")"
		default:
			file, _, _ := strings.Cut(target, "#")
			name := p.help(path.Base(file))
			if file == "" || name == "" || name == "glossary" { // pages link its terms at first use
				return p.inline(label)
			}
			return p.inline(label) + " (" + p.words(bold, "help "+name) + ")"
		}
	})
}

// code renders code: in color, or in backquotes.
func (p *pagePrinter) code(s string) string {
	word := strings.Trim(s, "`")
	if painted := p.words(cyan, word); painted != word {
		return painted
	}
	return s
}

// words colors each word of a text, because a pager forgets the color at the end of a row.
func (p *pagePrinter) words(color, s string) string {
	words := strings.Split(s, " ")
	for i, w := range words {
		if w != "" {
			words[i] = p.paint(color, w)
		}
	}
	return strings.Join(words, " ")
}
