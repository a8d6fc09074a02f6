package grid

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"dcs-tui/internal/text"
	"dcs-tui/jobs/shell"
)

// placeholderPattern matches the replacement strings of GNU parallel: a position and the letters of
// a path, an expression of Perl, or a name.
var placeholderPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{(?:(-?[0-9]+|)([./#%+]*)|(-?[0-9]*(?s:=.*?=))|(slot|host|sshlogin|hgrp|agrp|` +
		`choose_k|uniq))\}`)
})

// pathParts are the letters of the placeholders, with the function that returns the part of a value
// that they select. Those with + and those with two or three dots need --plus in GNU parallel.
var pathParts = map[string]func(string) string{
	"":     func(v string) string { return v },
	".":    func(v string) string { return cutExtensions(v, 1) },
	"..":   func(v string) string { return cutExtensions(v, 2) },
	"...":  func(v string) string { return cutExtensions(v, 3) },
	"/":    basename,
	"/.":   func(v string) string { return cutExtensions(basename(v), 1) },
	"/..":  func(v string) string { return cutExtensions(basename(v), 2) },
	"/...": func(v string) string { return cutExtensions(basename(v), 3) },
	"//":   dirname,
	"+/":   func(v string) string { return v[:max(strings.LastIndexByte(v, '/'), 0)] },
	"+.":   func(v string) string { return extensions(v, 1) },
	"+..":  func(v string) string { return extensions(v, 2) },
	"+...": func(v string) string { return extensions(v, 3) },
}

// otherPlaceholders are replacement strings of GNU parallel that are refused, with what to use
// instead. The key is the text between the braces without the position.
var otherPlaceholders = map[string]string{
	"%": "$DCS_SLOT is the number of the slot when the job runs; " +
		"a job with gpus=1 in a jobs file gets a GPU of its own",
	"#":  "{#} is the number of the job",
	"##": "the number of jobs has no placeholder: write it into the command",
	"=": "Perl is not supported: compute the value in the command, or write a program that prints " +
		"a .jsonl jobs file",
	"slot":     "$DCS_SLOT is the number of the slot when the job runs",
	"host":     "$DCS_HOST is the name of the host when the job runs",
	"sshlogin": "$DCS_HOST is the name of the host when the job runs",
	"hgrp":     "$DCS_HOST is the name of the host when the job runs; #DCS tags= in a jobs file selects hosts",
	"agrp":     "$DCS_HOST is the name of the host when the job runs; #DCS tags= in a jobs file selects hosts",
	"choose_k": "a template selects combinations with @where: dcs-tui grid --help",
	"uniq":     "a template selects combinations with @where: dcs-tui grid --help",
}

// argumentPart is a literal text, or a placeholder of a command or pattern.
type argumentPart struct {
	text     string              // literal text, or the placeholder as it is written
	isNumber bool                // {#}
	source   int                 // index of the source of the value; -1: all of them
	part     func(string) string // nil: a literal text or {#}
	around   shell.Enclosure
}

// parse cuts a text at its placeholders. found reports whether there are any. A replacement string
// of GNU parallel that is not supported, and the number of a source that does not exist, are errors.
func (a *Arguments) parse(s, what string) (parts []argumentPart, found bool, err error) {
	pattern, end := placeholderPattern(), 0
	matches := pattern.FindAllStringSubmatchIndex(s, -1)
	around := shell.Enclosures(a.shell, s, matches)
	for i, m := range matches {
		p, ok, err := a.placeholder(pattern.FindStringSubmatch(s[m[0]:m[1]]), what)
		switch {
		case err != nil && m[8] >= 0 && around[i] != shell.Unenclosed:
			continue // f"{host}" is Python; ${slot} is a variable
		case err != nil:
			return nil, false, err
		case !ok:
			continue
		}
		p.around = around[i]
		if m[0] > end {
			parts = append(parts, argumentPart{text: s[end:m[0]]})
		}
		parts, end, found = append(parts, p), m[1], true
	}
	if end < len(s) {
		parts = append(parts, argumentPart{text: s[end:]})
	}
	return parts, found, nil
}

// placeholder returns the part for a match of placeholderPattern. ok is false for braces that are
// no placeholder.
func (a *Arguments) placeholder(m []string, what string) (p argumentPart, ok bool, err error) {
	position, letters := m[1], m[2]
	part, known := pathParts[letters]
	switch advice := otherPlaceholders[letters]; {
	case m[3] != "":
		return p, false, text.Errorf("%s in %s: expressions of GNU parallel are not supported",
			m[0], what).WithAdvice("%s", otherPlaceholders["="])
	case m[4] != "":
		return p, false, text.Errorf("%s in %s is not supported", m[0], what).WithAdvice("%s", otherPlaceholders[m[4]])
	case letters == "#" && position == "":
		return argumentPart{text: m[0], isNumber: true}, true, nil
	case advice != "":
		return p, false, text.Errorf("%s in %s is not supported", m[0], what).WithAdvice("%s", advice)
	case !known:
		return p, false, text.Errorf("%s in %s is not a placeholder",
			m[0], what).WithAdvice("dcs-tui run --help; dcs-tui help jobs lists the placeholders")
	}
	p = argumentPart{text: m[0], part: part, source: -1}
	if position == "" {
		return p, true, nil
	}
	n, err := strconv.Atoi(position)
	if err == nil && n < 0 {
		n += len(a.sources) + 1
	}
	if err != nil || n < 1 || n > len(a.sources) {
		return p, false, fmt.Errorf("%s in %s: there %s", m[0], what,
			text.Verb(len(a.sources), "is one source of values",
				fmt.Sprintf("are %d sources of values", len(a.sources))))
	}
	p.source = n - 1
	return p, true, nil
}

// expand returns the text of job n with its values in place of the placeholders.
func expand(parts []argumentPart, n int, values []string, quote func(string) string) string {
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.isNumber:
			b.WriteString(strconv.Itoa(n))
		case p.part == nil:
			b.WriteString(p.text)
		default:
			for i, v := range p.chosen(values) {
				if i > 0 {
					b.WriteByte(' ')
				}
				b.WriteString(quote(p.part(v)))
			}
		}
	}
	return b.String()
}

// chosen returns the values that a placeholder stands for.
func (p *argumentPart) chosen(values []string) []string {
	if p.source < 0 {
		return values
	}
	return values[p.source : p.source+1]
}

// checkQuotes returns an error if a value of job n needs quotes where the command gives them another
// meaning: they would become part of the value, and the shell could run code in it.
func checkQuotes(parts []argumentPart, n int, values []string) error {
	for _, p := range parts {
		if p.part == nil || p.around == shell.Unenclosed {
			continue
		}
		for _, v := range p.chosen(values) {
			v = p.part(v)
			if text.ShellWord(v) != v {
				err := text.Errorf("job %d: %s is %v, where the value %s cannot be quoted", n, p.text, p.around,
					quoteText(v))
				if p.around.IsRemote() {
					return err.WithAdvice(`send it as input: printf '%%s\n' %s | `+
						`ssh HOST 'read -r x; wc -l "$x"'`, p.text)
				}
				if p.around.IsEvaluated() {
					return err.WithAdvice(`pass %s to a script: sh -c 'wc -l "$1"' _ %s; `+
						`instead of >&FILE, write >FILE 2>&1`, p.text, p.text)
				}
				return err.WithAdvice(`write %s outside of quotes, where it is quoted for the shell, or `+
					`pass it to a script: sh -c 'wc -l "$1"' _ %s`, p.text, p.text)
			}
		}
	}
	return nil
}

// basename returns the part after the last slash.
func basename(v string) string { return v[strings.LastIndexByte(v, '/')+1:] }

// dirname is dirname(1). Unlike path.Dir it keeps ".." and repeated slashes in the result.
func dirname(v string) string {
	trimmed := strings.TrimRight(v, "/")
	dir := strings.TrimRight(trimmed[:strings.LastIndexByte(trimmed, '/')+1], "/")
	switch {
	case dir != "":
		return dir
	case strings.HasPrefix(v, "/"):
		return "/"
	}
	return "."
}

// cutExtensions returns a value without its last n extensions. One with fewer of them is returned
// as it is, as GNU parallel does.
func cutExtensions(v string, n int) string {
	end := len(v)
	for range n {
		dot := strings.LastIndexAny(v[:end], "./")
		if dot < 0 || v[dot] == '/' {
			return v
		}
		end = dot
	}
	return v[:end]
}

// extensions returns the last n extensions of a value without the first dot, or "" if it has fewer.
// A single one may contain a slash, as in GNU parallel.
func extensions(v string, n int) string {
	if dot := strings.LastIndexByte(v, '.'); n == 1 && dot >= 0 {
		return v[dot+1:]
	}
	dot := len(v)
	for range n {
		dot = strings.LastIndexAny(v[:dot], "./")
		if dot < 0 || v[dot] == '/' {
			return ""
		}
	}
	return v[dot+1:]
}
