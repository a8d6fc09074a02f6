package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"

	"dcs-tui/jobs"
)

// Parse reads an inventory; file is its name for messages. It reports every
// problem it finds, not the first (type Problems).
func Parse(data []byte, file string) (*Inventory, []string, error) {
	n := &notes{file: file}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		n.bad(1+bytes.Count(data[:i], []byte("\n")), "a NUL byte: this is not a text file")
		return nil, nil, n.err()
	}
	if isLogins(data) {
		return ParseLogins(data, file)
	}
	var root map[string]any
	if _, err := toml.Decode(string(data), &root); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			line := pe.Position.Line
			if at := pe.Position.Start; at > 0 && at <= len(data) { // Line is one too far when a line end was not expected
				line = min(line, 1+bytes.Count(data[:at], []byte("\n")))
			}
			n.bad(line, "%s", strings.ReplaceAll(pe.Message, "\n", " "))
		} else {
			n.bad(0, "%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "toml: "), "\n", " "))
		}
		return nil, nil, n.err()
	}
	r := &reader{notes: n, at: locate(data), seen: map[string]int{}}
	r.root(root)
	if err := n.err(); err != nil {
		return nil, n.warningLines(), err
	}
	return &Inventory{File: file, Text: string(data), Hosts: r.hosts, Providers: r.providers, Tokens: r.tokens, defaults: r.defaults}, n.warningLines(), nil
}

// reader turns the tables of one file into hosts and providers.
type reader struct {
	*notes
	at        *places
	hosts     []*Host
	providers []*Provider
	tokens    []jobs.Token
	defaults  *draft
	seen      map[string]int // host name to the line that gave it
	full      bool           // MaxHosts was reached and said
}

func (r *reader) root(root map[string]any) {
	for _, key := range sortedKeys(root) {
		switch line := r.at.line("", 0, key); key {
		case "defaults", "host", "provider", "tokens":
		default:
			if _, known := inventoryKeys[key]; known {
				r.bad(line, "%q stands outside any table; put it under [defaults] or a [[host]]", key)
				continue
			}
			if _, isTable := root[key].(map[string]any); isTable || len(r.at.tables[key]) > 0 {
				line = r.at.table(key, 0)
			}
			r.bad(line, "unknown table or key %q; there are [defaults], [[host]], [[provider]] and [tokens]", key)
		}
	}

	def := &draft{host: defaultHost()}
	switch t := root["defaults"].(type) {
	case nil:
	case map[string]any:
		r.apply(def, "defaults", 0, t)
		if _, warning, err := slotRule(&draft{}, def); err != nil {
			r.bad(r.at.line("defaults", 0, "reserve"), "%v", err)
		} else if warning != "" {
			r.warn(r.at.line("defaults", 0, "reserve"), "%s", warning)
		}
	default:
		r.bad(r.at.table("defaults", 0), "defaults must be a table, written [defaults] once")
	}

	r.defaults = def
	r.readTokens(root["tokens"])

	tables, ok := tablesOf(root["host"])
	providers, ok2 := tablesOf(root["provider"])
	switch {
	case !ok:
		r.bad(r.at.table("host", 0), "write [[host]] with double brackets before each host")
	case !ok2:
		r.bad(r.at.table("provider", 0), "write [[provider]] with double brackets before each provider")
	case len(tables)+len(providers) == 0:
		r.bad(0, "no [[host]] in it; without an inventory file this machine is used")
	}
	for i, t := range tables {
		r.host(def, i, t)
	}
	for i, t := range providers {
		r.provider(def, i, t)
	}
}

// readTokens reads [tokens], which says how many there are of each kind.
func (r *reader) readTokens(v any) {
	table, ok := v.(map[string]any)
	if v != nil && !ok {
		r.bad(r.at.table("tokens", 0), "tokens must be a table, written [tokens] once")
	}
	for _, name := range sortedKeys(table) {
		err := jobs.CheckTokenName(name)
		if err == nil {
			err = number(0, jobs.MaxTokens, func(_ *draft, n int) { r.tokens = append(r.tokens, jobs.Token{Name: name, Count: n}) })(nil, table[name])
		}
		if err != nil {
			r.bad(r.at.line("tokens", 0, name), "%s: %v", name, err)
		}
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

// apply sets what a table says, and reports what it should not say.
func (r *reader) apply(d *draft, table string, n int, values map[string]any) {
	for _, key := range sortedKeys(values) {
		line := r.at.line(table, n, key)
		k, known := inventoryKeys[key]
		switch {
		case !known:
			hint := ""
			if near := jobs.Nearest(key, inventoryKeyNames(table)); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
			r.bad(line, "unknown key %q%s", key, hint)
		case k.provider && table != "provider":
			r.bad(line, "%s belongs in a [[provider]]", key)
		case k.own && table == "defaults":
			r.bad(line, "%s belongs in a [[host]], not in [defaults]", key)
		default:
			if err := k.set(d, values[key]); err != nil {
				r.bad(line, "%s: %v", key, err)
			} else if key == "lost_after" && d.host.LostAfter < 15*time.Second {
				r.warn(line, "lost_after below 15s: a short failure of the network gives a host up")
			}
		}
	}
}

// linkText describes, for warnings, the kind of link with which other keys have no
// effect.
var linkText = map[string]string{"local": "local", "command": "a command, whose words must say how to reach the host"}

// host reads the n-th [[host]] and adds the hosts that it stands for.
func (r *reader) host(def *draft, n int, values map[string]any) {
	if own := r.draft(def, "host", n, values, "name"); own != nil {
		r.expand(own.host, own, n)
	}
}

// draft reads the n-th table of a kind, which must have the keys of required. It returns
// nil if something is wrong with it.
func (r *reader) draft(def *draft, table string, n int, values map[string]any, required ...string) *draft {
	line := r.at.table(table, n)
	before := len(r.problems)
	own := &draft{table: table, host: def.host}
	r.apply(own, table, n, values)
	rule, warning, err := slotRule(def, own)
	if err != nil {
		r.bad(r.at.line(table, n, "reserve"), "%v", err)
	} else if warning != "" {
		r.warn(r.at.line(table, n, "reserve"), "%s", warning)
	}
	var missing []string
	for _, key := range required {
		if _, given := values[key]; !given {
			missing = append(missing, key)
		}
	}
	if missing != nil && len(r.problems) == before {
		r.bad(line, "a [[%s]] without a %s", table, strings.Join(missing, ", "))
	}
	if len(r.problems) > before {
		return nil
	}
	h := &own.host
	h.Slots, h.File, h.Line = rule, r.file, line
	if err := h.checkQueues(); err != nil {
		r.bad(r.at.line(table, n, "queues"), "queues: %v", err)
		return nil
	}
	if h.Link != "ssh" {
		for _, key := range []string{"address", "port", "user", "identity", "jump"} {
			if _, said := values[key]; said {
				r.warn(r.at.line(table, n, key), "%s does nothing here: link is %s", key, linkText[h.Link])
			}
		}
	}
	return own
}

func (r *reader) expand(h Host, own *draft, n int) {
	line := r.at.line("host", n, "name")
	names, err := Expand(own.name)
	if err != nil {
		r.bad(line, "name: %v", err)
		return
	}
	addresses, ok := r.addresses(h, own, names, n)
	if !ok {
		return
	}
	r.addHosts(line, names, addresses, h)
}

// addHosts adds the hosts of a line, which differ in their names and addresses.
func (r *reader) addHosts(line int, names []string, addresses [][]string, h Host) {
	if len(r.hosts)+len(names) > MaxHosts {
		if !r.full {
			r.bad(line, "more than %d hosts in one inventory", MaxHosts)
		}
		r.full = true
		return
	}
	for i, name := range names {
		if p := nameProblem(name); p != "" {
			r.bad(line, "%s", p)
			return // the others of a range would be wrong in the same way
		}
		if first, dup := r.seen[name]; dup {
			r.bad(line, "the host %s is given twice, first on line %d", name, first)
			continue
		}
		r.seen[name] = line
		one := h
		one.Name, one.Addresses = name, addresses[i]
		one.Jump, one.Tags, one.Quiet, one.Queues = slices.Clone(h.Jump), slices.Clone(h.Tags), slices.Clone(h.Quiet), slices.Clone(h.Queues)
		one.Command = nil
		for _, word := range h.Command {
			one.Command = append(one.Command, strings.ReplaceAll(word, "{name}", name))
		}
		r.hosts = append(r.hosts, &one)
	}
}

// addresses returns the addresses of each name: its own part of a range, or the
// name itself when an ssh host has none.
func (r *reader) addresses(h Host, own *draft, names []string, n int) ([][]string, bool) {
	out := make([][]string, len(names))
	line := r.at.line(own.table, n, "address")
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
			r.bad(line, "address: %v", err)
			return nil, false
		case len(expanded) == 1 && len(names) > 1:
			if h.Link == "ssh" {
				r.warn(line, "all %d hosts of %s have the same address %s", len(names), own.name, a)
			}
			expanded = slices.Repeat(expanded, len(names))
		case len(expanded) != len(names):
			r.bad(line, "address: %s stands for %d addresses, but the name %s for %d hosts", a, len(expanded), own.name, len(names))
			return nil, false
		}
		for i := range names {
			out[i] = append(out[i], expanded[i])
		}
	}
	return out, true
}

// expandAddress expands ranges; brackets round an IPv6 address are no range.
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
	case a[0] == '-' || strings.ContainsAny(a, " /\\'\"`$;&|<>()*?#"):
		return nil, fmt.Errorf("%q is not a host name or address", a)
	}
	return Expand(a)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

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

// tomlToken is a string of any kind, a comment, a bare word, or a single character.
var tomlToken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)"""(?:\\.|.)*?"{3,5}|'''.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\w-]+|.`)
})

// locate reads through the text once.
func locate(text []byte) *places {
	p := &places{tables: map[string][]int{}, keys: map[placeOfKey]int{}}
	var parts []string // of the key or the name of the table with which the statement begins
	table, n := "", 0
	line, at, depth := 1, 1, 0
	inKey, isTable := true, false
	for _, token := range tomlToken().FindAllString(string(text)+"\n", -1) {
		switch token[0] {
		case '[', '{':
			depth++
			isTable = isTable || inKey
		case ']', '}':
			depth--
		case '=':
			inKey = false
		case '\n':
			if depth > 0 {
				break
			}
			switch {
			case len(parts) == 0:
			case isTable && len(parts) > 1: // [host.x]: key x of the last host
				n = max(0, len(p.tables[parts[0]])-1)
				p.note(placeOfKey{parts[0], n, parts[1]}, at)
				table = strings.Join(parts, ".")
			case isTable:
				table, n = parts[0], len(p.tables[parts[0]])
				p.tables[table] = append(p.tables[table], at)
			default:
				p.note(placeOfKey{table, n, parts[0]}, at)
				if table == "" && len(parts) > 1 { // defaults.port = 22
					p.note(placeOfKey{parts[0], 0, parts[1]}, at)
				}
			}
			parts, inKey, isTable = nil, true, false
		case ' ', '\t', '\r', '.', '#':
		default:
			if inKey {
				if len(parts) == 0 {
					at = line
				}
				parts = append(parts, strings.Trim(token, `"'`))
			}
		}
		line += strings.Count(token, "\n")
	}
	return p
}

func (p *places) note(k placeOfKey, line int) {
	if _, seen := p.keys[k]; !seen {
		p.keys[k] = line
	}
}
