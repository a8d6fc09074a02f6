package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"dcs-tui/internal/account"
	"dcs-tui/internal/text"
	"dcs-tui/internal/trust"
	"dcs-tui/jobs"
)

// maxInventory bounds the size of an inventory file, so that a large file with a mistyped path,
// such as a disk image, is not read completely.
const maxInventory = 8 << 20

// siteInventory is the inventory of an administrator for users who have none. Tests replace it.
var siteInventory = "/etc/dcs-tui/hosts.toml"

// FindInventory returns the inventory file to read: flag (--hosts), else ./hosts.toml, else
// $XDG_CONFIG_HOME/dcs-tui/hosts.toml (~/.config if that is not set), else that of the site. It
// returns "" if there is none; then Local is the inventory. A flag that names a missing file is an
// error.
func FindInventory(flag string) (string, error) {
	if flag != "" {
		if _, err := os.Stat(flag); err != nil {
			return "", fmt.Errorf("inventory file: %w", err)
		}
		return flag, nil
	}
	candidates := []string{"hosts.toml"}
	if dir := ConfigDir(); dir != "" {
		candidates = append(candidates, filepath.Join(dir, "dcs-tui", "hosts.toml"))
	}
	candidates = append(candidates, siteInventory)
	for _, file := range candidates {
		_, err := os.Stat(file)
		switch {
		case err == nil:
			return file, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("inventory file: %w", err)
		}
	}
	return "", nil
}

// ConfigDir returns the directory of the user's settings: $XDG_CONFIG_HOME if it is absolute, else
// ~/.config.
func ConfigDir() string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home, err := account.Home(); err == nil {
		return filepath.Join(home, ".config")
	}
	return ""
}

// Load reads an inventory file. It returns warnings, one line each. An error about the
// content of the file is of type Problems.
func Load(path string) (*Inventory, []string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("inventory file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("inventory file: %w", err)
	case info.IsDir():
		return nil, nil, fmt.Errorf("inventory file: %s is a directory", path)
	}
	if _, err := trust.Check(info, path, trust.Strict); err != nil {
		return nil, nil, fmt.Errorf("inventory file: %w", err)
	}
	// The file may be a pipe or a device, which have no size to check.
	data, err := io.ReadAll(io.LimitReader(f, maxInventory+1))
	if err != nil {
		return nil, nil, fmt.Errorf("inventory file: %w", err)
	}
	if len(data) > maxInventory {
		return nil, nil, fmt.Errorf("inventory file: %s is longer than %d MiB, so it is not an inventory",
			path, maxInventory>>20)
	}
	return Parse(data, path)
}

// CheckLocal returns an error, with advice, if jobs cannot run on this machine.
func CheckLocal() error { return checkLocal(runtime.GOOS) }

func checkLocal(goos string) error {
	if goos == "linux" {
		return nil
	}
	return text.Errorf("jobs run on Linux only, so this machine cannot be a host").
		WithAdvice("list Linux hosts, which are reached with ssh, in hosts.toml: dcs-tui help hosts.toml shows one")
}

// Local returns the inventory of this machine alone, for use without a file: one host over
// the local link, with one slot less than cores.
func Local() *Inventory {
	h := defaultHost()
	h.Name, h.Link = "local", "local"
	if name, err := os.Hostname(); err == nil {
		if short, _, _ := strings.Cut(name, "."); nameProblem(short) == "" {
			h.Name = short
		}
	}
	h.Slots = SlotRule{Less: 1}
	return &Inventory{Hosts: []*Host{&h}}
}

// defaultHost returns a host with the default values.
func defaultHost() Host {
	return Host{Yield: true, Nice: 10, GPUs: -1, Weight: 1, Link: "ssh"}
}

// HasTags reports whether the host carries every one of the tags.
func (h *Host) HasTags(tags []string) bool {
	return !slices.ContainsFunc(tags, func(t string) bool { return !slices.Contains(h.Tags, t) })
}

// Find returns the host with that name, or nil if there is none.
func (inv *Inventory) Find(name string) *Host {
	for _, h := range inv.Hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// TokensWith returns the number of tokens of each kind. Those of the command line replace
// those of the inventory.
func (inv *Inventory) TokensWith(commandLine []jobs.Token) []jobs.Token {
	all := slices.Clone(commandLine)
	for _, t := range inv.Tokens {
		if !slices.ContainsFunc(commandLine, func(own jobs.Token) bool { return own.Name == t.Name }) {
			all = append(all, t)
		}
	}
	return all
}

// Add returns a new host with a name that is not in the inventory. It has the defaults of the
// inventory, and options as on the command line: "slots=4 tags=gpu,big address=10.0.0.5".
func (inv *Inventory) Add(name, options string) (*Host, error) {
	n := &notes{file: "host " + name}
	values := map[string]any{"name": name}
	for word := range strings.FieldsSeq(options) {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "name" {
			return nil, fmt.Errorf("%q is not an option of a host, such as slots=4 or tags=gpu", word)
		}
		values[key] = optionValue(key, value)
	}
	r := newReader(n, nil)
	r.readHost(cmp.Or(inv.defaults, &draft{host: defaultHost()}), 0, values)
	switch err := n.err(); {
	case err != nil:
		return nil, err
	case len(r.hosts) != 1:
		return nil, fmt.Errorf("%s stands for %d hosts; add them one by one", name, len(r.hosts))
	}
	h := r.hosts[0]
	h.File, h.Line = "", 0
	if inv.slots != nil {
		h.Slots = *inv.slots
	}
	return h, nil
}

// SetSlots sets the slots of all hosts but those of providers, also of hosts that Add returns later. For a
// login with a number of slots, this is the number of cores, as in GNU parallel.
func (inv *Inventory) SetSlots(rule SlotRule) {
	inv.slots = &rule
	isLogins := isLogins([]byte(inv.Text))
	for _, h := range inv.Hosts {
		if isLogins && h.Slots.Fixed > 0 {
			h.Slots = SlotRule{Fixed: rule.Count(h.Slots.Fixed)}
		} else {
			h.Slots = rule
		}
	}
}

// optionValue returns the value of KEY=WORD as a value of TOML. A key of texts decides that its words
// are texts, such as tags=2080; other words are numbers, yes or no, texts, or lists, as they look.
func optionValue(key, word string) any {
	if k := findKey(key); k != nil && k.option != nil {
		return k.option(word)
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil {
		return f
	}
	if word == "true" || word == "false" {
		return word == "true"
	}
	return asTexts(word)
}

// TOML returns the inventory as TOML, to which AddedText can be appended. It is the text of
// the file unless there is no file or it is a list of logins.
func (inv *Inventory) TOML() string {
	if inv.Text != "" && !isLogins([]byte(inv.Text)) {
		return inv.Text
	}
	var b strings.Builder
	for _, h := range inv.Hosts {
		options := "link=" + h.Link + text.If(h.Slots.Fixed > 0, fmt.Sprintf(" slots=%d", h.Slots.Fixed))
		if len(h.Addresses) == 1 && h.Addresses[0] != h.Name {
			options += " address=" + h.Addresses[0]
		}
		options += text.If(h.User != "", " user="+h.User) + text.If(h.Port > 0, fmt.Sprintf(" port=%d", h.Port))
		b.WriteString(AddedText(h.Name, options))
	}
	return b.String()
}

// AddedText returns the [[host]] table of a host that Add accepts, for an inventory file.
func AddedText(name, options string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n[[host]]\nname = %q\n", name)
	for word := range strings.FieldsSeq(options) {
		key, value, _ := strings.Cut(word, "=")
		line, _ := toml.Marshal(map[string]any{key: optionValue(key, value)}) // of these types it succeeds
		b.Write(line)
	}
	return b.String()
}

// With returns the hosts that a run uses: those of the inventory that were not removed on
// request, those that were added on request, and those of providers. errs holds an error for each
// host that was added on request and cannot be made.
func (inv *Inventory) With(asked map[string]jobs.HostRequest, provided []*Host) (list []*Host, errs []error) {
	names := map[string]bool{}
	add := func(h *Host) {
		if !names[h.Name] && !asked[h.Name].Removed {
			names[h.Name] = true
			list = append(list, h)
		}
	}
	for _, h := range inv.Hosts {
		add(h)
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if names[name] || asked[name].Removed {
			continue
		}
		h, err := inv.Add(name, asked[name].Options)
		if err != nil {
			errs = append(errs, fmt.Errorf("the host %s, which was added on request, is not used: %w", name, err))
			continue
		}
		add(h)
	}
	for _, h := range provided {
		add(h)
	}
	return list, errs
}

// UnknownText returns the error text for a host that is not one of those with the known names.
func UnknownText(name string, known []string) string {
	if near := text.Nearest(name, known); near != "" {
		return "there is no host " + name + "; did you mean " + near + "?"
	}
	return "there is no host " + name
}

// Problem is one error in an inventory file.
type Problem struct {
	File string
	Line int // from 1; 0: the file as a whole, or a list that has no lines
	Text string
}

// String returns "file:line: text".
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Problems holds all errors in an inventory file, in order of lines.
type Problems []Problem

// maxShown is the maximum number of problems in Problems.Error, because a wrong file can have
// 10,000 of them.
const maxShown = 20

// Error returns a line for each problem, at most maxShown.
func (p Problems) Error() string {
	lines := text.Each(p[:min(len(p), maxShown)], Problem.String)
	if more := len(p) - maxShown; more > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more", p[0].File, more))
	}
	return strings.Join(lines, "\n")
}

// notes collects problems and warnings while a file is read.
type notes struct {
	file     string
	problems Problems
	warnings Problems
}

func (n *notes) addProblem(line int, format string, args ...any) {
	n.problems = append(n.problems, Problem{n.file, line, fmt.Sprintf(format, args...)})
}

func (n *notes) addWarning(line int, format string, args ...any) {
	n.warnings = append(n.warnings, Problem{n.file, line, fmt.Sprintf(format, args...)})
}

func (n *notes) err() error {
	if len(n.problems) == 0 {
		return nil
	}
	return sortByLine(n.problems)
}

func sortByLine(list Problems) Problems {
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return list
}
