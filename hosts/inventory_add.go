package hosts

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// Add returns the host of a name that is not in the inventory, with the defaults of the
// inventory and options as on the command line: "slots=4 tags=gpu,big address=10.0.0.5".
func (inv *Inventory) Add(name, options string) (*Host, error) {
	n := &notes{file: "host " + name}
	values := map[string]any{"name": name}
	for word := range strings.FieldsSeq(options) {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "name" {
			return nil, fmt.Errorf("%q is not an option of a host, such as slots=4 or tags=gpu", word)
		}
		values[key] = optionValue(value)
	}
	def := inv.defaults
	if def == nil {
		def = &draft{host: defaultHost()}
	}
	r := &reader{notes: n, at: locate(nil), seen: map[string]int{}}
	r.host(def, 0, values)
	switch err := n.err(); {
	case err != nil:
		return nil, err
	case len(r.hosts) != 1:
		return nil, fmt.Errorf("%s stands for %d hosts; add them one by one", name, len(r.hosts))
	}
	h := r.hosts[0]
	h.File, h.Line = "", 0
	return h, nil
}

// optionValue returns the value of an option as a value of TOML.
func optionValue(s string) any {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f
	}
	if s == "true" || s == "false" {
		return s == "true"
	}
	if strings.Contains(s, ",") {
		var list []any
		for part := range strings.SplitSeq(s, ",") {
			list = append(list, part)
		}
		return list
	}
	return s
}

// TOML returns the text of an inventory in the form to which AddedText can be appended: that
// of its file, unless it has none or is a list of logins.
func (inv *Inventory) TOML() string {
	if inv.Text != "" && !isLogins([]byte(inv.Text)) {
		return inv.Text
	}
	var b strings.Builder
	for _, h := range inv.Hosts {
		options := "link=" + h.Link
		if h.Slots.Fixed > 0 {
			options += fmt.Sprintf(" slots=%d", h.Slots.Fixed)
		}
		if h.User != "" {
			options += " user=" + h.User
		}
		if h.Port > 0 {
			options += fmt.Sprintf(" port=%d", h.Port)
		}
		b.WriteString(AddedText(h.Name, options))
	}
	return b.String()
}

// AddedText returns the [[host]] of a host that Add accepts, for an inventory file.
func AddedText(name, options string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n[[host]]\nname = %q\n", name)
	for word := range strings.FieldsSeq(options) {
		key, value, _ := strings.Cut(word, "=")
		switch v := optionValue(value).(type) {
		case string:
			fmt.Fprintf(&b, "%s = %q\n", key, v)
		case []any:
			fmt.Fprintf(&b, "%s = [%q", key, v[0])
			for _, one := range v[1:] {
				fmt.Fprintf(&b, ", %q", one)
			}
			b.WriteString("]\n")
		default:
			fmt.Fprintf(&b, "%s = %v\n", key, v)
		}
	}
	return b.String()
}

// With returns the hosts that a run uses: those of the inventory that people did not
// remove, those that they added, and those of providers. added are those that it made, and
// errs tells of those that could not be made.
func (inv *Inventory) With(asked map[string]jobs.HostRequest, provided []*Host) (list, added []*Host, errs []error) {
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
		added = append(added, h)
		add(h)
	}
	for _, h := range provided {
		add(h)
	}
	return list, added, errs
}
