package hosts

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// draft is a table of the inventory on its way to become hosts or a provider: the values
// of [defaults] first, those of the [[host]] or [[provider]] over them.
type draft struct {
	table     string // "host" or "provider"; "" for [defaults]
	host      Host
	provider  Provider
	slurm     Slurm
	name      string
	addresses []string
	slots     *slotsWord
	reserve   *int
}

// slotsWord is `slots` as written.
type slotsWord struct {
	fixed int  // a number
	less  int  // cores-N
	bare  bool // "cores": reserve says how many less
}

// inventoryKey is one key of [defaults], [[host]] and [[provider]].
type inventoryKey struct {
	set      func(d *draft, v any) error // the error is for people and does not name the key
	own      bool                        // belongs to one [[host]] or [[provider]], not in [defaults]
	provider bool                        // belongs in a [[provider]] only
}

// inventoryKeys is every key there is; hosts.toml.example documents them.
var inventoryKeys = map[string]inventoryKey{
	"name":          {set: text(func(d *draft, s string) error { d.name = s; return nil }), own: true},
	"address":       {set: list(setAddress), own: true},
	"port":          {set: number(1, 65535, func(d *draft, n int) { d.host.Port = n })},
	"user":          {set: text(setUser)},
	"identity":      {set: text(setIdentity)},
	"jump":          {set: list(setJump)},
	"slots":         {set: setSlots},
	"reserve":       {set: number(0, jobs.MaxSlots, func(d *draft, n int) { d.reserve = &n })},
	"yield":         {set: boolean(func(d *draft, b bool) { d.host.Yield = b })},
	"max_load":      {set: decimal(true, func(d *draft, f float64) { d.host.MaxLoad = f })},
	"min_mem_free":  {set: size(func(d *draft, n int64) { d.host.MinMemFree = n })},
	"min_disk_free": {set: size(func(d *draft, n int64) { d.host.MinDiskFree = n })},
	"quiet":         {set: list(setQuiet)},
	"owner":         {set: text(setOwner)},
	"owner_idle":    {set: span(setOwnerIdle)},
	"nice":          {set: number(0, 19, func(d *draft, n int) { d.host.Nice = n })},
	"tags":          {set: list(setTags)},
	"queues":        {set: list(setQueues)},
	"gpus":          {set: number(-1, jobs.MaxGPUs, func(d *draft, n int) { d.host.GPUs = n })},
	"gpu_ids":       {set: setGPUIDs},
	"mem_limit":     {set: boolean(func(d *draft, b bool) { d.host.NoMemLimit = !b })},
	"weight":        {set: decimal(false, func(d *draft, f float64) { d.host.Weight = f })},
	"work_dir":      {set: text(setWorkDir)},
	"share_dir":     {set: text(setShareDir)},
	"setup":         {set: setSetup},
	"send":          {set: list(func(d *draft, items []string) error { d.host.Send = items; return nil })},
	"lost_after":    {set: span(setLostAfter)},
	"link":          {set: setLink},
	"type":          {set: text(setType), own: true, provider: true},
	"create":        {set: command(func(p *Provider, s string) { p.Create = s }), own: true, provider: true},
	"list":          {set: command(func(p *Provider, s string) { p.List = s }), own: true, provider: true},
	"terminate":     {set: command(func(p *Provider, s string) { p.Terminate = s }), own: true, provider: true},
	"max":           {set: number(1, MaxInstances, func(d *draft, n int) { d.provider.Max = n }), own: true, provider: true},
	"startup":       {set: span(setStartup), own: true, provider: true},
	"idle":          {set: span(setIdle), own: true, provider: true},
	"price":         {set: decimal(true, func(d *draft, f float64) { d.provider.Price = f }), own: true, provider: true},
}

// inventoryKeyNames returns the keys that a table may have, in alphabetical order.
func inventoryKeyNames(table string) []string {
	names := make([]string, 0, len(inventoryKeys))
	for name, k := range inventoryKeys {
		if table == "provider" || !k.provider {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// command takes shell text, of several lines too.
func command(set func(*Provider, string)) func(*draft, any) error {
	return func(d *draft, v any) error {
		s, ok := v.(string)
		switch {
		case !ok:
			return wrongKind(v, "a command in quotes")
		case strings.TrimSpace(s) == "":
			return fmt.Errorf("must not be empty")
		case strings.ContainsRune(s, 0):
			return fmt.Errorf("contains a NUL byte")
		}
		set(&d.provider, strings.TrimSpace(s))
		return nil
	}
}

func setStartup(d *draft, t time.Duration) error {
	if t < time.Second || t > 24*time.Hour {
		return fmt.Errorf("must be from 1s to 24h, not %s", t)
	}
	d.provider.Startup = t
	return nil
}

func setIdle(d *draft, t time.Duration) error {
	if t < time.Second {
		return fmt.Errorf("must be at least 1s, not %s", t)
	}
	d.provider.Idle = t
	return nil
}

func setUser(d *draft, s string) error {
	if s[0] == '-' || strings.ContainsAny(s, " @:/") {
		return fmt.Errorf("%q is not a user name", s)
	}
	d.host.User = s
	return nil
}

// absolute is also what starts in the home directory.
func absolute(s string) bool { return path.IsAbs(s) || s == "~" || strings.HasPrefix(s, "~/") }

func setIdentity(d *draft, s string) error {
	if !absolute(s) && !strings.HasPrefix(s, "%d/") {
		return fmt.Errorf("%q must be a whole path (/… or ~/…)", s)
	}
	d.host.Identity = s
	return nil
}

func setWorkDir(d *draft, s string) error {
	if !absolute(s) {
		return fmt.Errorf("%q must be a whole path on the host (/… or ~/…)", s)
	}
	d.host.WorkDir = path.Clean(s)
	return nil
}

func setShareDir(d *draft, s string) error {
	if !path.IsAbs(s) {
		return fmt.Errorf("%q must be a whole path on the host (/…)", s)
	}
	d.host.ShareDir = path.Clean(s)
	return nil
}

// setSetup takes several lines too: it is shell.
func setSetup(d *draft, v any) error {
	s, ok := v.(string)
	if !ok {
		return wrongKind(v, "a text in quotes")
	}
	if strings.ContainsRune(s, 0) {
		return fmt.Errorf("contains a NUL byte")
	}
	d.host.Setup = strings.TrimSpace(s)
	return nil
}

func setAddress(d *draft, items []string) error {
	if len(items) == 0 {
		return fmt.Errorf("must not be an empty list; leave it out to use the name")
	}
	d.addresses = items
	return nil
}

// setJump keeps an empty list apart from none at all: it means no gateway,
// whatever ssh_config says.
func setJump(d *draft, items []string) error {
	jumps := []string{}
	for _, item := range items {
		for one := range strings.SplitSeq(item, ",") {
			one = strings.TrimSpace(one)
			if one == "none" && len(items) == 1 && !strings.Contains(item, ",") {
				continue
			}
			if one == "" || one[0] == '-' || strings.ContainsAny(one, " /") {
				return fmt.Errorf("%q is not a gateway; write [user@]host[:port], or none", one)
			}
			jumps = append(jumps, one)
		}
	}
	d.host.Jump = jumps
	return nil
}

func setQuiet(d *draft, items []string) error {
	d.host.Quiet = nil
	for _, item := range items {
		q, err := parseQuiet(item)
		if err != nil {
			return err
		}
		d.host.Quiet = append(d.host.Quiet, q)
	}
	return nil
}

func setOwner(d *draft, s string) error {
	switch s {
	case "ignore":
		s = ""
	case OwnerPause, OwnerSuspend:
	default:
		return fmt.Errorf(`must be "pause", "suspend" or "ignore", not %q`, s)
	}
	d.host.Owner = s
	return nil
}

func setOwnerIdle(d *draft, t time.Duration) error {
	if t < time.Second {
		return fmt.Errorf("must be at least 1s, not %s", t)
	}
	d.host.OwnerIdle = t
	return nil
}

func setTags(d *draft, items []string) error {
	var tags []string
	for _, item := range items {
		for t := range strings.SplitSeq(item, ",") {
			t = strings.TrimSpace(t)
			if t == "" || len(t) > 63 || strings.ContainsFunc(t, func(r rune) bool { return !plain(r) && r != ':' && r != '=' && r != '+' }) {
				return fmt.Errorf("%q is not a tag; letters, digits and . _ - : = + are allowed, at most 63", t)
			}
			tags = append(tags, t)
		}
	}
	slices.Sort(tags)
	d.host.Tags = slices.Compact(tags)
	return nil
}

// setGPUIDs takes the number of a device, or a list of such numbers.
func setGPUIDs(d *draft, v any) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	d.host.GPUIDs = []int{}
	for _, one := range list {
		n, err := strconv.Atoi(fmt.Sprint(one))
		if err != nil || n < 0 || n >= jobs.MaxGPUs {
			return fmt.Errorf("must be numbers of devices, such as [0, 2]; %v is none", one)
		}
		d.host.GPUIDs = append(d.host.GPUIDs, n)
	}
	slices.Sort(d.host.GPUIDs)
	d.host.GPUIDs = slices.Compact(d.host.GPUIDs)
	return nil
}

func setLostAfter(d *draft, t time.Duration) error {
	if t < time.Second {
		return fmt.Errorf("must be at least 1s, not %s", t)
	}
	d.host.LostAfter = t
	return nil
}

// setLink takes ssh, local, or a command: split like a shell would, or a list.
func setLink(d *draft, v any) error {
	d.host.Command, d.host.Shells = nil, 0
	if _, isText := v.(string); !isText {
		argv, err := texts(v)
		if err != nil {
			return err
		}
		if len(argv) == 0 {
			return fmt.Errorf(`must be "ssh", "local" or a command`)
		}
		d.host.Link, d.host.Command, d.host.Shells = "command", argv, RemoteShells(argv)
		return nil
	}
	s, err := oneLine(v)
	if err != nil {
		return err
	}
	if s == "ssh" || s == "local" {
		d.host.Link = s
		return nil
	}
	if s == "srun" && d.table == "provider" {
		d.host.Link, d.host.Command = "command", []string{s} // completed for Slurm
		return nil
	}
	argv, err := splitWords(s)
	if err != nil {
		return err
	}
	if len(argv) == 0 || len(argv) == 1 && !strings.Contains(argv[0], "/") { // a typing error, most likely
		return fmt.Errorf(`%q is neither "ssh" nor "local"; a command of one word is written as a list: [%q]`, s, s)
	}
	if argv[0] == "" {
		return fmt.Errorf("%q is a command without a program", s)
	}
	d.host.Link, d.host.Command, d.host.Shells = "command", argv, RemoteShells(argv)
	return nil
}
