package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Parse reads an inventory; file is its name for messages. It reports every
// problem it finds, not the first (type Problems).
func Parse(data []byte, file string) (*Inventory, []string, error) {
	n := &notes{file: file}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // Windows editors write it
	if i := bytes.IndexByte(data, 0); i >= 0 {
		n.addProblem(1+bytes.Count(data[:i], []byte("\n")), "a NUL byte: this is not a text file")
		return nil, nil, n.err()
	}
	if isLogins(data) {
		return ParseLogins(data, file)
	}
	var root map[string]any
	if _, err := toml.Decode(string(data), &root); err != nil {
		if pe, ok := errors.AsType[toml.ParseError](err); ok {
			lines := strings.Split(string(data), "\n")
			line := min(max(pe.Position.Line, 1), len(lines)) // 0 for an error at the end of the text
			// Line is one too far when a line end was not expected
			if at := pe.Position.Start; at > 0 && at <= len(data) {
				line = min(line, 1+bytes.Count(data[:at], []byte("\n")))
			}
			n.addProblem(line, "%s", syntaxProblem(lines[line-1], strings.ReplaceAll(pe.Message, "\n", " ")))
		} else {
			n.addProblem(0, "%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "toml: "), "\n", " "))
		}
		return nil, nil, n.err()
	}
	r := newReader(n, data)
	r.readRoot(root)
	return r.inventory(data)
}

// syntaxProblem describes the syntax error of a line. It finds missing quotes, and characters that
// are not what they look like, and returns the message of the library for other errors.
func syntaxProblem(line, message string) string {
	code, _, _ := strings.Cut(line, "#")
	if _, why := jobs.Ambiguous(code); why != "" {
		return why
	}
	key, value, _ := strings.Cut(line, "=")
	if quote := strings.TrimSpace(value); quote != "" && strings.ContainsAny(quote[:1], `"'`) {
		if !strings.Contains(quote[1:], quote[:1]) {
			return fmt.Sprintf("the closing %s is missing", quote[:1])
		}
		return message
	}
	value, _, _ = strings.Cut(value, "#")
	value = strings.TrimSpace(value)
	if list, ok := strings.CutPrefix(strings.TrimSuffix(value, "]"), "["); ok && list != "" &&
		!strings.ContainsAny(list, `"'[]{},`) {
		return fmt.Sprintf("%s is not a value; a text needs quotes: %s = [%q]", list, strings.TrimSpace(key), list)
	}
	if value == "" || strings.ContainsAny(value, `"'[]{}`) {
		return message
	}
	return fmt.Sprintf("%s is not a value; a text needs quotes: %s = %q", value, strings.TrimSpace(key), value)
}

// inventoryReader turns the tables of one file into hosts and providers.
type inventoryReader struct {
	*notes
	positions     *positions
	hosts         []*Host
	providers     []*Provider
	tokens        []jobs.Token
	defaults      *draft
	nameLines     map[string]int // host name to the line that gave it, or 0
	limitReported bool           // the problem that there are more than MaxHosts was reported
}

func newReader(n *notes, data []byte) *inventoryReader {
	return &inventoryReader{notes: n, positions: locate(data), nameLines: map[string]int{}}
}

// inventory returns what was read, and the warnings.
func (r *inventoryReader) inventory(data []byte) (*Inventory, []string, error) {
	warnings := text.Each(sortByLine(r.warnings), Problem.String)
	if err := r.err(); err != nil {
		return nil, warnings, err
	}
	return &Inventory{File: r.file, Text: string(data), Hosts: r.hosts, Providers: r.providers, Tokens: r.tokens,
		defaults: r.defaults}, warnings, nil
}

func (r *inventoryReader) readRoot(root map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(root)) {
		switch line := r.positions.line("", 0, key); key {
		case "defaults", "host", "provider", "tokens":
		default:
			if findKey(key) != nil {
				r.addProblem(line, "%q stands outside any table; put it under [defaults] or a [[host]]", key)
				continue
			}
			if _, isTable := root[key].(map[string]any); isTable || len(r.positions.tables[key]) > 0 {
				line = r.positions.table(key, 0)
			}
			r.addProblem(line, "unknown table or key %q; there are [defaults], [[host]], [[provider]] and [tokens]",
				key)
		}
	}

	def := &draft{host: defaultHost()}
	switch t := root["defaults"].(type) {
	case nil:
	case map[string]any:
		r.apply(def, "defaults", 0, t)
		r.slotRule(r.positions.line("defaults", 0, "reserve"), &draft{}, def)
	default:
		r.addProblem(r.positions.table("defaults", 0), "defaults must be a table, written [defaults] once")
	}

	r.defaults = def
	r.readTokens(root["tokens"])

	tables, ok := tablesOf(root["host"])
	providers, ok2 := tablesOf(root["provider"])
	switch {
	case !ok:
		r.addProblem(r.positions.table("host", 0), "write [[host]] with double brackets before each host")
	case !ok2:
		r.addProblem(r.positions.table("provider", 0), "write [[provider]] with double brackets before each provider")
	case len(tables)+len(providers) == 0:
		r.addProblem(0, "no [[host]] in it; without an inventory file this machine is used")
	}
	for i, t := range tables {
		r.readHost(def, i, t)
	}
	for i, t := range providers {
		r.readProvider(def, i, t)
	}
}

// readTokens reads [tokens], the number of tokens of each kind.
func (r *inventoryReader) readTokens(v any) {
	table, ok := v.(map[string]any)
	if v != nil && !ok {
		r.addProblem(r.positions.table("tokens", 0), "tokens must be a table, written [tokens] once")
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		n := 0
		err := jobs.CheckTokenName(name)
		if err == nil {
			n, err = wholeNumber(table[name], 0, jobs.MaxTokens)
		}
		if err != nil {
			r.addProblem(r.positions.line("tokens", 0, name), "%s: %v", name, err)
		}
		r.tokens = append(r.tokens, jobs.Token{Name: name, Count: n})
	}
}

// tablesOf accepts [[host]] and host = [{…}].
func tablesOf(v any) ([]map[string]any, bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case []map[string]any:
		return v, true
	case []any:
		var tables []map[string]any
		for _, one := range v {
			t, ok := one.(map[string]any)
			if !ok {
				return nil, false
			}
			tables = append(tables, t)
		}
		return tables, true
	}
	return nil, false
}

// apply sets the values of the n-th table of that name. It reports keys that do not belong
// in the table.
func (r *inventoryReader) apply(d *draft, table string, n int, values map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		line := r.positions.line(table, n, key)
		k := findKey(key)
		switch {
		case k == nil:
			hint := ""
			if near := text.Nearest(key, keyNames(table)); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
			r.addProblem(line, "unknown key %q%s", key, hint)
		case k.scope >= providerOnly && table != "provider":
			r.addProblem(line, "%s belongs in a [[provider]]", key)
		case k.scope == notDefaults && table == "defaults":
			r.addProblem(line, "%s belongs in a [[host]], not in [defaults]", key)
		case !k.isCommand() && invisibleIn(values[key]) != "":
			r.addProblem(line, "%s: %s", key, invisibleIn(values[key]))
		default:
			if why := invisibleIn(values[key]); why != "" {
				r.addWarning(line, "%s: in a command, %s", key, why)
			}
			if err := k.set(d, values[key]); err != nil {
				r.addProblem(line, "%s: %v", key, err)
			} else if key == "lost_after" && d.host.LostAfter < 15*time.Second {
				r.addWarning(line, "lost_after is below 15s: a short failure of the network makes a host lost")
			}
		}
	}
}

// invisibleIn describes the first invisible character of a text or of a list of texts, or returns "".
func invisibleIn(v any) string {
	switch v := v.(type) {
	case string:
		return jobs.Invisible(v)
	case []any:
		for _, one := range v {
			if why := invisibleIn(one); why != "" {
				return why
			}
		}
	}
	return ""
}

// linkText describes the links with which the keys of ssh have no effect.
var linkText = map[string]string{"local": "local", "command": "a command, whose words must say how to reach the host"}

// readHost reads the n-th [[host]] and adds the hosts that it describes.
func (r *inventoryReader) readHost(def *draft, n int, values map[string]any) {
	own := r.readDraft(def, "host", n, values, "name")
	if own == nil {
		return
	}
	line := r.positions.line("host", n, "name")
	names, err := Expand(own.name)
	if err != nil {
		r.addProblem(line, "name: %v", err)
		return
	}
	if addresses, ok := r.addresses(own.host, own, names, n); ok {
		r.addHosts(line, names, addresses, own.host)
	}
}

// readDraft reads the n-th table of that name, which must have the required keys. It returns
// nil if it has reported a problem.
func (r *inventoryReader) readDraft(def *draft, table string, n int, values map[string]any, required ...string) *draft {
	line := r.positions.table(table, n)
	before := len(r.problems)
	own := &draft{table: table, host: def.host}
	r.apply(own, table, n, values)
	rule := r.slotRule(r.positions.line(table, n, "reserve"), def, own)
	var missing []string
	for _, key := range required {
		if _, given := values[key]; !given {
			missing = append(missing, key)
		}
	}
	if missing != nil && len(r.problems) == before {
		r.addProblem(line, "a [[%s]] without a %s", table, strings.Join(missing, ", "))
	}
	if len(r.problems) > before {
		return nil
	}
	h := &own.host
	h.Slots, h.File, h.Line = rule, r.file, line
	if err := h.checkQueues(); err != nil {
		r.addProblem(r.positions.line(table, n, "queues"), "queues: %v", err)
		return nil
	}
	if err := h.checkSilence(); err != nil {
		r.addProblem(r.positions.line(table, n, "heartbeat"), "%v", err)
		return nil
	}
	if h.Link != "ssh" {
		for _, key := range []string{"address", "port", "user", "identity", "jump"} {
			if _, said := values[key]; said {
				r.addWarning(r.positions.line(table, n, key), "%s does nothing here: link is %s", key, linkText[h.Link])
			}
		}
	}
	return own
}

// addHosts adds the hosts of one line. They differ in their names and addresses.
func (r *inventoryReader) addHosts(line int, names []string, addresses [][]string, h Host) {
	if len(r.hosts)+len(names) > MaxHosts {
		if !r.limitReported {
			r.addProblem(line, "more than %d hosts in one inventory", MaxHosts)
		}
		r.limitReported = true
		return
	}
	for i, name := range names {
		if p := nameProblem(name); p != "" {
			r.addProblem(line, "%s", p)
			return // the others of a range would be wrong in the same way
		}
		if first, dup := r.nameLines[name]; dup {
			if line == 0 {
				r.addProblem(line, "the host %s is given twice", name)
			} else {
				r.addProblem(line, "the host %s is given twice, first on line %d", name, first)
			}
			continue
		}
		r.nameLines[name] = line
		one := h
		one.Name, one.Addresses = name, addresses[i]
		one.Command = nil
		for _, word := range h.Command {
			one.Command = append(one.Command, strings.ReplaceAll(word, "{name}", name))
		}
		r.hosts = append(r.hosts, &one)
	}
}

// addresses returns the addresses of each name: its own part of a range, or the name itself
// if an ssh host has no address.
func (r *inventoryReader) addresses(h Host, own *draft, names []string, n int) ([][]string, bool) {
	out := make([][]string, len(names))
	line := r.positions.line(own.table, n, "address")
	if len(own.addresses) == 0 {
		if h.Link == "ssh" {
			for i, name := range names {
				out[i] = []string{name}
			}
		}
		return out, true
	}
	for _, a := range own.addresses {
		expanded, err := expandAddress(a)
		switch {
		case err != nil:
			r.addProblem(line, "address: %v", err)
			return nil, false
		case len(expanded) == 1 && len(names) > 1:
			if h.Link == "ssh" {
				r.addWarning(line, "all %d hosts of %s have the same address %s", len(names), own.name, a)
			}
			expanded = slices.Repeat(expanded, len(names))
		case len(expanded) != len(names):
			r.addProblem(line, "address: %s stands for %d addresses, but the name %s for %d hosts; "+
				"give one address for each host, or one for all", a, len(expanded), own.name, len(names))
			return nil, false
		}
		for i := range names {
			out[i] = append(out[i], expanded[i])
		}
	}
	return out, true
}

// expandAddress expands ranges. Brackets around an IPv6 address are not a range.
func expandAddress(a string) ([]string, error) {
	if inner, ok := strings.CutPrefix(a, "["); ok && strings.Count(inner, ":") > 1 {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok {
			return nil, fmt.Errorf("%q: the port goes into `port`", a)
		}
		a = inner
	}
	switch {
	case strings.Contains(a, "@"):
		return nil, fmt.Errorf("%q: the user goes into `user`", a)
	case strings.Count(a, ":") == 1:
		return nil, fmt.Errorf("%q: the port goes into `port`", a)
	case a[0] == '-' || strings.ContainsAny(a, " /\\'\"`$;&|<>()*?#") || text.Clean(a, 0) != a:
		return nil, fmt.Errorf("%q is not a host name or address", a)
	}
	return Expand(a)
}

// positions holds the lines of the tables and keys in a TOML text. The library returns lines
// of syntax errors only. The library has accepted the text before, so syntax is not checked
// again. A key that is not found, such as one in an inline table, has the line of its table.
type positions struct {
	tables map[string][]int    // lines of [name] and [[name]], in order
	keys   map[keyPosition]int // first line of each key
}

// keyPosition is a key in the n-th table of that name, from 0. The root table is "" and 0.
type keyPosition struct {
	table string
	n     int
	key   string
}

// line returns the line of a key, else that of its table, else 1.
func (p *positions) line(table string, n int, key string) int {
	if l, ok := p.keys[keyPosition{table, n, key}]; ok {
		return l
	}
	return p.table(table, n)
}

// table returns the line of the n-th table of that name, else 1.
func (p *positions) table(table string, n int) int {
	if lines := p.tables[table]; n < len(lines) {
		return lines[n]
	}
	if l, ok := p.keys[keyPosition{"", 0, table}]; ok {
		return l // host = [{…}, {…}]
	}
	return 1
}

// tomlText matches a string of any kind or a comment.
var tomlText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)"""(?:\\.|.)*?"{3,5}|'''.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*`)
})

// tomlStatement matches the beginning of a statement: brackets of a table, a key, and the key after
// a dot.
var tomlStatement = sync.OnceValue(func() *regexp.Regexp {
	const key = `("[^"\n]*"|'[^'\n]*'|[\w-]+)\s*`
	return regexp.MustCompile(`^\s*(\[[\s[]*)?` + key + `(?:\.\s*` + key + `[^=\]]*)?[=\]]`)
})

// KeyLine returns the line of a key in a table of a TOML file, whose name is "" for a key outside of
// tables. If the key is not found, it returns the line of the table, or 1.
func KeyLine(text []byte, table, key string) int { return locate(text).line(table, 0, key) }

func locate(text []byte) *positions {
	p := &positions{tables: map[string][]int{}, keys: map[keyPosition]int{}}
	// Of strings with several lines and of comments only the line ends are left.
	plain := tomlText().ReplaceAllStringFunc(string(text), func(s string) string {
		if s[0] == '#' || strings.Contains(s, "\n") {
			return strings.Repeat("\n", strings.Count(s, "\n"))
		}
		return s
	})
	table, n, line := "", 0, 0
	for statement := range strings.Lines(plain) {
		line++
		m := tomlStatement().FindStringSubmatch(statement)
		if m == nil {
			continue
		}
		m[2], m[3] = strings.Trim(m[2], `"'`), strings.Trim(m[3], `"'`)
		switch {
		case m[1] != "" && m[3] != "": // [host.x]: key x of the last host
			p.record(keyPosition{m[2], max(0, len(p.tables[m[2]])-1), m[3]}, line)
			table, n = m[2]+"."+m[3], 0
		case m[1] != "":
			table, n = m[2], len(p.tables[m[2]])
			p.tables[table] = append(p.tables[table], line)
		default:
			p.record(keyPosition{table, n, m[2]}, line)
			if table == "" && m[3] != "" { // defaults.port = 22
				p.record(keyPosition{m[2], 0, m[3]}, line)
			}
		}
	}
	return p
}

func (p *positions) record(k keyPosition, line int) {
	if _, seen := p.keys[k]; !seen {
		p.keys[k] = line
	}
}
