package export

import (
	"strings"

	"dcs-tui/jobs/results/sheet"
)

// markdownEscapes are what GitHub's Markdown gives a meaning within a cell.
var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "<", `\<`, ">", `\>`, "&", `\&`,
	"[", `\[`, "]", `\]`, "!", `\!`, "#", `\#`, "$", `\$`, "@", `\@`, "://", `:\//`, "www.", `www\.`)

func (t *table) markdown() {
	numbers := t.numeric()
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
			if t.s.At(r, c).Kind == sheet.Number {
				return t.text(r, c)
			}
			return markdownEscapes.Replace(t.text(r, c))
		})
	}
}

// latexEscapes are the characters that TeX or its old font encoding give a meaning; a [
// or a * would belong to the end of the row before it.
var latexEscapes = strings.NewReplacer(
	`\`, `\textbackslash{}`, "{", `\{`, "}", `\}`, "$", `\$`, "&", `\&`, "#", `\#`, "_", `\_`, "%", `\%`,
	"~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "<", `\textless{}`, ">", `\textgreater{}`,
	"|", `\textbar{}`, `"`, `{\char34}`, "`", `{\char96}`, "[", `{[}`, "]", `{]}`, "*", `{*}`)

// latexText escapes a text; -- and --- of a command stay hyphens.
func latexText(s string) string {
	s = latexEscapes.Replace(s)
	for range 2 {
		s = strings.ReplaceAll(s, "--", "-{}-")
	}
	return s
}

func (t *table) latex() {
	var align strings.Builder
	for _, number := range t.numeric() {
		if number {
			align.WriteByte('r')
		} else {
			align.WriteByte('l')
		}
	}
	t.b.WriteString("% \\usepackage{booktabs}\n\\begin{tabular}{" + align.String() + "}\n\\toprule\n")
	for row := -1; row < t.s.Len(); row++ {
		for i, c := range t.columns {
			if i > 0 {
				t.b.WriteString(" & ")
			}
			switch {
			case row < 0:
				t.b.WriteString(latexText(t.name(c)))
			case t.s.At(row, c).Kind == sheet.Number:
				t.b.WriteString(latexNumber(t.text(row, c)))
			default:
				t.b.WriteString(latexText(t.text(row, c)))
			}
		}
		t.b.WriteString(" \\\\\n")
		if row < 0 {
			t.b.WriteString("\\midrule\n")
		}
	}
	t.b.WriteString("\\bottomrule\n\\end{tabular}\n")
}

// latexNumber gives a negative number, and a negative exponent, its sign, not a hyphen.
func latexNumber(s string) string {
	return strings.ReplaceAll(latexEscapes.Replace(s), "-", "$-$")
}
