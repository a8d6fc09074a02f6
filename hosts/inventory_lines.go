package hosts

import (
	"bytes"
	"strings"
)

// places knows on which line of a TOML text the tables and keys stand: the TOML
// library says so for errors of syntax only. It is built over a text that the
// library has accepted, so it need not judge, only find. A key that it does not
// find (inside an inline table, say) has the line of the table.
type places struct {
	tables map[string][]int   // lines of [name] and [[name]], in order
	keys   map[placeOfKey]int // first line of each key
}

// placeOfKey is the n-th table of that name, from 0; the root is "" and 0.
type placeOfKey struct {
	table string
	n     int
	key   string
}

// line returns where a key stands, else where its table starts, else 1.
func (p *places) line(table string, n int, key string) int {
	if l, ok := p.keys[placeOfKey{table, n, key}]; ok {
		return l
	}
	return p.table(table, n)
}

// table returns where the n-th table of that name starts, else 1.
func (p *places) table(table string, n int) int {
	if lines := p.tables[table]; n < len(lines) {
		return lines[n]
	}
	if l, ok := p.keys[placeOfKey{"", 0, table}]; ok {
		return l // host = [{…}, {…}]
	}
	return 1
}

// locate reads through the text once.
func locate(text []byte) *places {
	p := &places{tables: map[string][]int{}, keys: map[placeOfKey]int{}}
	table, n := "", 0
	line := 1
	for len(text) > 0 {
		statement := statementLength(text)
		one := text[:statement]
		skipped := len(one) - len(bytes.TrimLeft(one, " \t\r\n"))
		at := line + bytes.Count(one[:skipped], []byte("\n"))
		one = one[skipped:]
		switch {
		case len(one) == 0 || one[0] == '#':
		case one[0] == '[':
			parts := keyParts(bytes.TrimLeft(one, "["))
			if len(parts) == 0 {
				break
			}
			table = parts[0]
			if len(parts) > 1 { // [host.x]: key x of the last host
				n = max(0, len(p.tables[table])-1)
				p.note(placeOfKey{table, n, parts[1]}, at)
				table = strings.Join(parts, ".")
				break
			}
			p.tables[table] = append(p.tables[table], at)
			n = len(p.tables[table]) - 1
		default:
			if parts := keyParts(one); len(parts) > 0 {
				p.note(placeOfKey{table, n, parts[0]}, at)
				if table == "" && len(parts) > 1 { // defaults.port = 22
					p.note(placeOfKey{parts[0], 0, parts[1]}, at)
				}
			}
		}
		line += bytes.Count(text[:statement], []byte("\n"))
		text = text[statement:]
	}
	return p
}

func (p *places) note(k placeOfKey, line int) {
	if _, seen := p.keys[k]; !seen {
		p.keys[k] = line
	}
}

// statementLength returns how far the first statement of text reaches, its line
// end included: strings and brackets may take it over several lines.
func statementLength(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '#':
			if end := bytes.IndexByte(text[i:], '\n'); end < 0 {
				return len(text)
			} else {
				i += end - 1
			}
		case '"', '\'':
			i += stringLength(text[i:]) - 1
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '\n':
			if depth <= 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// stringLength returns the length of the TOML string that text starts with,
// quotes included; at least 1.
func stringLength(text []byte) int {
	quote := text[:1]
	if triple := bytes.Repeat(quote, 3); bytes.HasPrefix(text, triple) {
		for i := 3; i < len(text); i++ {
			if text[i] == '\\' && quote[0] == '"' {
				i++
			} else if bytes.HasPrefix(text[i:], triple) {
				i += 3
				for i < len(text) && text[i] == quote[0] { // """a""""" ends with two quotes of its own
					i++
				}
				return i
			}
		}
		return len(text)
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote[0] == '"':
			i++
		case text[i] == quote[0]:
			return i + 1
		case text[i] == '\n':
			return i
		}
	}
	return len(text)
}

// keyParts returns the parts of a dotted key, unquoted, up to the = or ] that
// ends it.
func keyParts(text []byte) []string {
	var parts []string
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ' ' || c == '\t' || c == '.':
			i++
		case c == '"' || c == '\'':
			n := stringLength(text[i:])
			parts = append(parts, strings.Trim(string(text[i:i+n]), string(c)))
			i += n
		case plain(rune(c)):
			start := i
			for i < len(text) && plain(rune(text[i])) && text[i] != '.' {
				i++
			}
			parts = append(parts, string(text[start:i]))
		default:
			return parts
		}
	}
	return parts
}
