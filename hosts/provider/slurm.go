package provider

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// allocationLine reads a line of squeue in hosts.SlurmFormat. Lines about jobs of other
// names are not examined.
func allocationLine(p *hosts.Provider, line, prefix string) (Instance, error) {
	fields := strings.Split(line, "|")
	in := Instance{Name: fields[0]}
	if len(fields) > 1 && !strings.HasPrefix(in.Name, prefix) {
		return in, nil // a job of somebody's own; its name may have bars in it
	}
	if len(fields) != 6 {
		return in, errors.New("it does not have six fields")
	}
	id, state, left, nodes, reason := fields[1], fields[2], fields[3], fields[4], fields[5]
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return in, errors.New("the second field is not the number of a job")
	}
	switch state {
	case "PENDING", "CONFIGURING":
		in.Pending = jobs.Clean(reason, maxLastLine)
		if state == "CONFIGURING" || reason == "None" || reason == "" {
			in.Pending = strings.ToLower(state)
		}
		return in, nil
	case "SUSPENDED":
	case "RUNNING":
		var err error
		if in.Left, err = timeLeft(left); err != nil {
			return in, err
		}
	default:
		return in, fmt.Errorf("the state %q was not asked for", state)
	}
	names, err := nodeNames(nodes)
	if err != nil {
		return in, err
	}
	for _, node := range names {
		h, err := p.Instance(in.Name+"."+node, node, 0)
		if err != nil {
			return in, err
		}
		for i, word := range h.Command {
			h.Command[i] = strings.ReplaceAll(word, "{job}", id)
		}
		in.Hosts = append(in.Hosts, h)
	}
	return in, nil
}

// timeLeft reads days-hours:minutes:seconds, of which the days and hours may be missing.
// 0: there is no end, or none is known. An allocation whose time is over has a second left.
func timeLeft(s string) (time.Duration, error) {
	switch s {
	case "UNLIMITED", "NOT_SET", "INVALID", "N/A":
		return 0, nil
	}
	days, clock, dated := strings.Cut(s, "-")
	if !dated {
		days, clock = "0", s
	}
	parts := strings.Split(clock, ":")
	if n := len(parts); n < 2 || n > 3 {
		return 0, fmt.Errorf("%q is not a time that is left", s)
	}
	total := 0
	for i, part := range append([]string{days}, parts...) {
		n, err := strconv.ParseUint(part, 10, 20)
		if err != nil {
			return 0, fmt.Errorf("%q is not a time that is left", s)
		}
		unit := 60
		if i == 1 && len(parts) == 3 {
			unit = 24
		}
		if i == 1 && len(parts) == 2 {
			unit = 24 * 60
		}
		total = total*unit + int(n)
	}
	return max(time.Second, time.Duration(total)*time.Second), nil
}

// nodeNames expands a list of nodes such as a[01-03,7],login2.
func nodeNames(list string) ([]string, error) {
	var names []string
	depth, from := 0, 0
	for i, r := range list + "," {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth == 0:
			if i == from {
				return nil, fmt.Errorf("%q is not a list of nodes", list)
			}
			some, err := hosts.Expand(list[from:i])
			if err != nil {
				return nil, err
			}
			if names, from = append(names, some...), i+1; len(names) > hosts.MaxHosts {
				return nil, fmt.Errorf("%q are more than %d nodes", list, hosts.MaxHosts)
			}
		}
	}
	return names, nil
}
