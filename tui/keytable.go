package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// keyEntry defines what a key means, in all views. The bindings refer to it by its name, and add what
// it does in a view.
type keyEntry struct {
	name string // in the configuration file
	keys string // Bubble Tea's names, separated by blanks; the footer shows the first
	help string // for docs/screen.md
}

// keyTable defines all keys of the screen, except those of lines and questions. No key has two
// meanings (rule 12).
var keyTable = []keyEntry{
	{"jobs", "1", "show the jobs; the key of the current view switches to full width and back"},
	{"hosts", "2", "show the hosts"},
	{"failed", "3", "show failures by cause"},
	{"results", "4", "show the results"},
	{"events", "5", "show the events"},
	{"next-view", "tab", "go to the next pane or view"},
	{"previous-view", "shift+tab", "go to the previous one"},
	{"zoom", "z", "show only this pane, over the whole width, and back"},
	{"back", "esc", "go back one level: close a pane, clear the selection or the filter"},
	{"leave", "q ctrl+c", "leave the screen; if the run continues, it asks how"},
	{"detach", "d", "when asked how to leave: let the run continue in the background"},
	{"help", "?", "list the keys of the view, the commands, and the filter language"},
	{"command", ":", "type a command, with completion"},
	{"suspend", "ctrl+z", "suspend the screen; the run continues"},
	{"redraw", "ctrl+l", "redraw the screen"},

	{"down", "j down", "move down"},
	{"up", "k up", "move up"},
	{"left", "left", "move left: columns, long lines, cells"},
	{"right", "right", "move right"},
	{"half-page-down", "ctrl+d", "move down half a page"},
	{"half-page-up", "ctrl+u", "move up half a page"},
	{"page-down", "pgdown ctrl+f", "move down a page"},
	{"page-up", "pgup ctrl+b", "move up a page"},
	{"first", "g home", "move to the start"},
	{"last", "G end", "move to the end"},
	{"open", "enter", "show what is under the cursor: details, or the jobs of a cause, a group, or a cell"},
	{"list", "f", "show the jobs of a host, a cause, or an event in the list of jobs"},
	{"find", "/", "filter a list, or search an output"},
	{"next-match", "n", "go to the next match of a search"},
	{"previous-match", "N", "go to the previous match"},
	{"sort", "s", "sort by the next column"},
	{"reverse", "S", "sort in reverse order"},
	{"columns", "C", "choose the columns of a list"},
	{"select", "space", "select a job, or not"},
	{"select-all", "a", "select all jobs that match the filter"},
	{"all-records", "v", "show all records of the journal, or only important events"},

	{"log", "l", "show the output of a job"},
	{"why", "w", "show why a job is not running"},
	{"cancel", "c", "cancel jobs; when asked how to leave: the whole run"},
	{"requeue", "r", "run finished jobs again"},
	{"edit", "e", "edit the command of a job and run it again"},
	{"undo", "u", "undo a cancel, for ten seconds"},
	{"more", "+ =", "make a job more urgent; give a host one slot more"},
	{"less", "-", "make a job less urgent; give a host one slot fewer"},
	{"pause", "p", "pause launching, or continue, also after a drain"},
	{"resume", "R", "without a dispatcher: resume the run, or run again what failed"},
	{"copy", "y", "copy the command of a job or of its output, or the line"},
	{"pager", "E", "open the output in `$PAGER` (`less -R`)"},

	{"follow", "F", "follow the end of an output"},
	{"stream", "o", "show stderr instead of stdout, and back"},
	{"wrap", "W", "wrap long lines, or cut them"},
	{"previous-attempt", "[", "show the output of the attempt before"},
	{"next-attempt", "]", "show the output of the attempt after"},

	{"drain", "D", "start nothing more on a host, or use it again; when asked how to leave: the whole run"},
	{"stop", "x", "end the jobs on a host, and use it no more"},
	{"add-host", "A", "add a host to the run"},
	{"shell", "!", "open a shell on the host, or on that of the job"},

	{"groups", "m", "show results by group, with mean and spread, and back"},
	{"heat-map", "h", "show a heat map of the results, and back"},
}

// findKey returns an entry of the table, or nil.
func findKey(name string) *keyEntry {
	if i := slices.IndexFunc(keyTable, func(e keyEntry) bool { return e.name == name }); i >= 0 {
		return &keyTable[i]
	}
	return nil
}

// keysFor returns the keys of entries, whose names blanks separate. A key that the user has given to
// another entry is missing.
func (m *model) keysFor(names string) (keys []string) {
	for name := range strings.FieldsSeq(names) {
		own, chosen := m.opt.Keys[name]
		if !chosen {
			own = strings.Fields(findKey(name).keys)
		}
		for _, k := range own {
			if chosen || !m.opt.isKeyChosen(k) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// keyFor returns the key of an entry that a text names, or the command instead of a key.
func (m *model) keyFor(name string) string {
	if keys := m.keysFor(name); len(keys) > 0 {
		return keys[0]
	}
	return ":" + name
}

// isKeyChosen reports whether the user has given a key to an entry.
func (o *Options) isKeyChosen(key string) bool {
	for _, keys := range o.Keys {
		if slices.Contains(keys, key) {
			return true
		}
	}
	return false
}

var namedKeys = strings.Fields("enter tab esc space backspace delete insert up down left right home end pgup pgdown")

// isKey reports whether a name is one that Bubble Tea gives to a key. It has the letters of a
// combination with ctrl in lower case, and a letter with shift alone in upper case.
func isKey(name string) bool {
	rest, found, modified := name, false, false
	for _, mod := range []string{"ctrl+", "alt+", "shift+"} {
		if rest, found = strings.CutPrefix(rest, mod); found {
			modified = true
		}
	}
	if utf8.RuneCountInString(rest) == 1 {
		return !modified || rest == strings.ToLower(rest) && !strings.HasPrefix(name, "shift+")
	}
	n, err := strconv.Atoi(strings.TrimPrefix(rest, "f"))
	return slices.Contains(namedKeys, rest) || rest == "f"+strconv.Itoa(n) && err == nil && n >= 1 && n <= 63
}

// setKeys gives keys to an entry instead of its own.
func (o *Options) setKeys(name string, value any) error {
	if findKey(name) == nil {
		return query.Unknown("key", name, text.Each(keyTable, func(e keyEntry) string { return e.name }))
	}
	list, ok := value.(string)
	keys := strings.Fields(list)
	if !ok || len(keys) == 0 {
		return fmt.Errorf(`keys.%s is a key, or several with blanks between them, such as "x ctrl+x"`, name)
	}
	for i, k := range keys {
		if !isKey(k) {
			return fmt.Errorf(`unknown key "%s"; keys are named like x, X, ctrl+x, alt+x, shift+tab, enter, `+
				`esc, space, pgdown, f5`,
				text.Clean(k, 40))
		}
		if o.isKeyChosen(k) || slices.Contains(keys[:i], k) {
			return fmt.Errorf("the key %q is given twice", k)
		}
	}
	jobs.Insert(&o.Keys, name, keys)
	return nil
}
