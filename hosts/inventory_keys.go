package hosts

import (
	"errors"
	"fmt"
	"path"
	"regexp"
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
	"name":          {set: str(func(d *draft, s string) error { d.name = s; return nil }), own: true},
	"address":       {set: list(setAddress), own: true},
	"port":          {set: number(1, 65535, func(d *draft, n int) { d.host.Port = n })},
	"user":          {set: str(setUser)},
	"identity":      {set: str(setIdentity)},
	"jump":          {set: list(setJump)},
	"slots":         {set: setSlots},
	"reserve":       {set: number(0, jobs.MaxSlots, func(d *draft, n int) { d.reserve = &n })},
	"yield":         {set: boolean(func(d *draft, b bool) { d.host.Yield = b })},
	"max_load":      {set: decimal(true, func(d *draft, f float64) { d.host.MaxLoad = f })},
	"min_mem_free":  {set: size(func(d *draft, n int64) { d.host.MinMemFree = n })},
	"min_disk_free": {set: size(func(d *draft, n int64) { d.host.MinDiskFree = n })},
	"quiet":         {set: list(setQuiet)},
	"owner":         {set: str(setOwner)},
	"owner_idle":    {set: span(time.Second, 0, func(d *draft, t time.Duration) { d.host.OwnerIdle = t })},
	"nice":          {set: number(0, 19, func(d *draft, n int) { d.host.Nice = n })},
	"tags":          {set: list(setTags)},
	"queues":        {set: list(setQueues)},
	"gpus":          {set: number(-1, jobs.MaxGPUs, func(d *draft, n int) { d.host.GPUs = n })},
	"gpu_ids":       {set: setGPUIDs},
	"mem_limit":     {set: boolean(func(d *draft, b bool) { d.host.NoMemLimit = !b })},
	"weight":        {set: decimal(false, func(d *draft, f float64) { d.host.Weight = f })},
	"work_dir":      {set: str(setWorkDir)},
	"share_dir":     {set: str(setShareDir)},
	"setup":         {set: setSetup},
	"send":          {set: list(func(d *draft, items []string) error { d.host.Send = items; return nil })},
	"lost_after":    {set: span(time.Second, 0, func(d *draft, t time.Duration) { d.host.LostAfter = t })},
	"link":          {set: setLink},
	"type":          {set: str(setType), own: true, provider: true},
	"create":        {set: command(func(p *Provider, s string) { p.Create = s }), own: true, provider: true},
	"list":          {set: command(func(p *Provider, s string) { p.List = s }), own: true, provider: true},
	"terminate":     {set: command(func(p *Provider, s string) { p.Terminate = s }), own: true, provider: true},
	"max":           {set: number(1, MaxInstances, func(d *draft, n int) { d.provider.Max = n }), own: true, provider: true},
	"startup":       {set: span(time.Second, 24*time.Hour, func(d *draft, t time.Duration) { d.provider.Startup = t }), own: true, provider: true},
	"idle":          {set: span(time.Second, 0, func(d *draft, t time.Duration) { d.provider.Idle = t }), own: true, provider: true},
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
		return fmt.Errorf("%q must be an absolute path (/… or ~/…)", s)
	}
	d.host.Identity = s
	return nil
}

func setWorkDir(d *draft, s string) error {
	if !absolute(s) {
		return fmt.Errorf("%q must be an absolute path on the host (/… or ~/…)", s)
	}
	d.host.WorkDir = path.Clean(s)
	return nil
}

func setShareDir(d *draft, s string) error {
	if !path.IsAbs(s) {
		return fmt.Errorf("%q must be an absolute path on the host (/…)", s)
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

// Kept is what a host keeps for the jobs of a queue: slots, GPUs, or, if both are 0, all
// of it.
type Kept struct {
	Queue       string
	Slots, GPUs int
}

// String returns k as it is written in the inventory.
func (k Kept) String() string {
	s := k.Queue
	if k.Slots > 0 {
		s += fmt.Sprintf(" slots=%d", k.Slots)
	}
	if k.GPUs > 0 {
		s += fmt.Sprintf(" gpus=%d", k.GPUs)
	}
	return s
}

// keptForm is an item of `queues`.
var keptForm = regexp.MustCompile(`^(.*?\S)(?: slots=([1-9]\d{0,3}))?(?: gpus=([1-9]\d{0,3}))?$`)

// setQueues reads `queues`.
func setQueues(d *draft, items []string) error {
	d.host.Queues = nil
	for _, item := range items {
		m := keptForm.FindStringSubmatch(item)
		if m == nil || strings.Contains(m[1], "slots=") || strings.Contains(m[1], "gpus=") {
			return fmt.Errorf(`%q is none of "QUEUE", "QUEUE slots=N", "QUEUE gpus=N", and "QUEUE slots=N gpus=N"`, item)
		}
		slots, _ := strconv.Atoi(m[2])
		gpus, _ := strconv.Atoi(m[3])
		d.host.Queues = append(d.host.Queues, Kept{m[1], slots, gpus})
		if slices.ContainsFunc(d.host.Queues[:len(d.host.Queues)-1], func(k Kept) bool { return k.Queue == m[1] }) {
			return fmt.Errorf("the queue %s is given twice", m[1])
		}
	}
	return nil
}

// checkQueues returns why a host cannot keep what its queues ask for, as far as is known.
func (h *Host) checkQueues() error {
	slots, gpus := h.KeptFrom("")
	switch {
	case h.Slots.Fixed > 0 && slots > h.Slots.Fixed:
		return fmt.Errorf("%s are kept, and the host has %d", jobs.Plural(slots, "slot"), h.Slots.Fixed)
	case h.GPUs >= 0 && gpus > h.GPUs:
		return fmt.Errorf("%s are kept, and the host has %d", jobs.Plural(gpus, "GPU"), h.GPUs)
	}
	return nil
}

// IsOpenTo reports whether jobs of a queue may run on the host.
func (h *Host) IsOpenTo(queue string) bool {
	open := true
	for _, k := range h.Queues {
		if k.Queue == queue {
			return true
		}
		open = open && k.Slots+k.GPUs > 0
	}
	return open
}

// KeptFrom returns how many slots and GPUs of the host are kept for other queues than this.
func (h *Host) KeptFrom(queue string) (slots, gpus int) {
	for _, k := range h.Queues {
		if k.Queue != queue {
			slots += k.Slots
			gpus += k.GPUs
		}
	}
	return slots, gpus
}

// KeptText names the queues that the host, or a part of it, is kept for: "urgent, late slots=2".
func (h *Host) KeptText() string {
	var names []string
	for _, k := range h.Queues {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

// setSlots takes 8, "8", "cores" or "cores-1".
func setSlots(d *draft, v any) error {
	var s string
	switch v := v.(type) {
	case int64:
		s = strconv.FormatInt(v, 10)
	case string:
		s = strings.ReplaceAll(v, " ", "")
	default:
		return wrongKind(v, `a whole number, "cores" or "cores-1"`)
	}
	if s == "cores" {
		d.slots = &slotsWord{bare: true}
		return nil
	}
	digits, less := strings.CutPrefix(s, "cores-")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), less && n < 0:
		return fmt.Errorf(`must be a whole number, "cores" or "cores-1", not %q`, s)
	case n > jobs.MaxSlots:
		return fmt.Errorf("must be at most %d, not %s", jobs.MaxSlots, digits)
	case less:
		d.slots = &slotsWord{less: n}
	case n < 1:
		return fmt.Errorf("must be at least 1; to leave a host out, remove it from the file")
	default:
		d.slots = &slotsWord{fixed: n}
	}
	return nil
}

// slotRule settles `slots` and `reserve` of a host, own, over those of
// [defaults], def. Without either a core is left for people. A warning or
// an error concerns the host's own `reserve`.
func slotRule(def, own *draft) (rule SlotRule, warning string, err error) {
	slots, reserve := own.slots, own.reserve
	if slots == nil {
		slots = def.slots
	}
	if reserve == nil {
		reserve = def.reserve
	}
	switch {
	case slots != nil && slots.fixed > 0:
		if own.reserve != nil {
			warning = fmt.Sprintf("reserve does nothing here: slots is the number %d", slots.fixed)
		}
		return SlotRule{Fixed: slots.fixed}, warning, nil
	case slots != nil && !slots.bare:
		if own.reserve == nil {
			return SlotRule{Less: slots.less}, "", nil
		}
		if own.slots != nil && *own.reserve != slots.less {
			return SlotRule{}, "", fmt.Errorf("reserve = %d contradicts slots = \"cores-%d\"; give only one of them", *own.reserve, slots.less)
		}
		return SlotRule{Less: *own.reserve}, "", nil
	case reserve != nil:
		return SlotRule{Less: *reserve}, "", nil
	case slots != nil: // "cores", all of them
		return SlotRule{}, "", nil
	}
	return SlotRule{Less: 1}, "", nil
}
