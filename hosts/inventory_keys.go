package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dcs-tui/internal/account"
	"dcs-tui/jobs"
)

// draft is one table of an inventory while it is read: the values of [defaults], and over
// them those of the [[host]] or [[provider]].
type draft struct {
	table     string // "host" or "provider"; "" for [defaults]
	host      Host
	provider  Provider
	slurm     Slurm
	name      string   // pattern
	addresses []string // patterns
	slots     *slotsValue
	reserve   *int
}

// slotsValue is `slots` as written.
type slotsValue struct {
	fixed    int  // a number
	less     int  // cores-N
	allCores bool // "cores", from which reserve is subtracted
}

// inventoryKey is a key of [defaults], [[host]] and [[provider]].
type inventoryKey struct {
	name  string
	scope scope
	keyType
}

// scope tells in which tables a key may be.
type scope int

const (
	anywhere     scope = iota
	notDefaults        // in a [[host]] or [[provider]]
	providerOnly       // in a [[provider]]
	slurmOnly          // in a [[provider]] with type = "slurm"
)

// inventoryKeys lists all keys; hosts.toml.example documents them.
var inventoryKeys = []inventoryKey{
	{"name", notDefaults, lineType(func(d *draft) *string { return &d.name }, anyText)},
	{"address", notDefaults, listType(func(d *draft) *[]string { return &d.addresses }, parseAddresses)},
	{"port", anywhere, numberType(func(d *draft) *int { return &d.host.Port }, 1, 65535)},
	{"user", anywhere, lineType(func(d *draft) *string { return &d.host.User }, parseUser)},
	{"identity", anywhere, lineType(func(d *draft) *string { return &d.host.Identity }, parseIdentity)},
	{"ssh_config", anywhere, lineType(func(d *draft) *string { return &d.host.SSHConfig }, parseSSHConfig)},
	{"jump", anywhere, listType(func(d *draft) *[]string { return &d.host.Jump }, parseJump)},
	{"slots", anywhere, keyType{set: setSlots}},
	{"reserve", anywhere, keyType{set: setReserve}},
	{"yield", anywhere, boolType(func(d *draft) *bool { return &d.host.Yield }, true)},
	{"max_load", anywhere, decimalType(func(d *draft) *float64 { return &d.host.MaxLoad }, true)},
	{"min_mem_free", anywhere, sizeType(func(d *draft) *int64 { return &d.host.MinMemFree })},
	{"min_disk_free", anywhere, sizeType(func(d *draft) *int64 { return &d.host.MinDiskFree })},
	{"quiet", anywhere, listType(func(d *draft) *[]Quiet { return &d.host.Quiet }, parseQuietTimes)},
	{"owner", anywhere, lineType(func(d *draft) *string { return &d.host.Owner }, parseOwner)},
	{"owner_idle", anywhere, durationType(func(d *draft) *time.Duration { return &d.host.OwnerIdle }, time.Second, 0)},
	{"nice", anywhere, numberType(func(d *draft) *int { return &d.host.Nice }, 0, 19)},
	{"pin", anywhere, boolType(func(d *draft) *bool { return &d.host.Pin }, true)},
	{"tags", anywhere, listType(func(d *draft) *[]string { return &d.host.Tags }, parseTags)},
	{"queues", anywhere, listType(func(d *draft) *[]KeptPart { return &d.host.Queues }, parseKeptParts)},
	{"gpus", anywhere, numberType(func(d *draft) *int { return &d.host.GPUs }, -1, jobs.MaxGPUs)},
	{"gpu_ids", anywhere, keyType{set: setGPUIDs, get: func(d *draft) any { return d.host.GPUIDs }}},
	{"mem_limit", anywhere, boolType(func(d *draft) *bool { return &d.host.NoMemLimit }, false)},
	{"weight", anywhere, decimalType(func(d *draft) *float64 { return &d.host.Weight }, false)},
	{"work_dir", anywhere, lineType(func(d *draft) *string { return &d.host.WorkDir }, parseWorkDir)},
	{"share_dir", anywhere, lineType(func(d *draft) *string { return &d.host.ShareDir }, parseShareDir)},
	{"setup", anywhere, shellType(func(d *draft) *string { return &d.host.Setup }, true)},
	{"send", anywhere, listType(func(d *draft) *[]string { return &d.host.Send }, anyTexts)},
	{"lost_after", anywhere, durationType(func(d *draft) *time.Duration { return &d.host.LostAfter }, time.Second, 0)},
	{"outage_after", anywhere,
		durationType(func(d *draft) *time.Duration { return &d.host.OutageAfter }, time.Second, 0)},
	{"heartbeat", anywhere,
		durationType(func(d *draft) *time.Duration { return &d.host.Heartbeat }, time.Second, maxHeartbeat)},
	{"suspect_after", anywhere,
		durationType(func(d *draft) *time.Duration { return &d.host.SuspectAfter }, minSuspectAfter, 0)},
	{"straggler_factor", anywhere, fieldType(func(d *draft) *float64 { return &d.host.StragglerFactor }, parseFactor)},
	{"straggler_age", anywhere,
		durationType(func(d *draft) *time.Duration { return &d.host.StragglerAge }, time.Millisecond, 0)},
	{"link", anywhere, keyType{set: setLink, option: asTexts,
		get: func(d *draft) any { return append([]string{d.host.Link}, d.host.Command...) }}},

	{"type", providerOnly, keyType{set: setType}},
	{"create", providerOnly, shellType(func(d *draft) *string { return &d.provider.Create }, false)},
	{"list", providerOnly, shellType(func(d *draft) *string { return &d.provider.List }, false)},
	{"terminate", providerOnly, shellType(func(d *draft) *string { return &d.provider.Terminate }, false)},
	{"max", providerOnly, numberType(func(d *draft) *int { return &d.provider.Max }, 1, MaxInstances)},
	{"min", providerOnly, numberType(func(d *draft) *int { return &d.provider.Min }, 0, MaxInstances)},
	{"rule", providerOnly, fieldType(func(d *draft) *ProvisionRule { return &d.provider.Rule }, parseProvisionRule)},
	{"startup", providerOnly,
		durationType(func(d *draft) *time.Duration { return &d.provider.Startup }, time.Second, 24*time.Hour)},
	{"idle", providerOnly, durationType(func(d *draft) *time.Duration { return &d.provider.Idle }, time.Second, 0)},
	{"price", providerOnly, decimalType(func(d *draft) *float64 { return &d.provider.Price }, true)},

	{"partition", slurmOnly, lineType(func(d *draft) *string { return &d.slurm.Partition }, anyText)},
	{"account", slurmOnly, lineType(func(d *draft) *string { return &d.slurm.Account }, anyText)},
	{"gres", slurmOnly, lineType(func(d *draft) *string { return &d.slurm.Gres }, anyText)},
	{"time", slurmOnly, durationType(func(d *draft) *time.Duration { return &d.slurm.Time }, time.Minute, maxTime)},
	{"nodes", slurmOnly, numberType(func(d *draft) *int { return &d.slurm.Nodes }, 1, maxNodes)},
	{"margin", slurmOnly, durationType(func(d *draft) *time.Duration { return &d.slurm.Margin }, 0, 0)},
	{"sbatch", slurmOnly, listType(func(d *draft) *[]string { return &d.slurm.Options }, anyTexts)},
}

// findKey returns the key of that name; nil: there is none.
func findKey(name string) *inventoryKey {
	if i := slices.IndexFunc(inventoryKeys, func(k inventoryKey) bool { return k.name == name }); i >= 0 {
		return &inventoryKeys[i]
	}
	return nil
}

// isCommand reports whether the value of a key is a command.
func (k *inventoryKey) isCommand() bool {
	return slices.Contains([]string{"setup", "link", "create", "list", "terminate"}, k.name)
}

// keyNames returns the keys that a table may have.
func keyNames(table string) (names []string) {
	for _, k := range inventoryKeys {
		if table == "provider" || k.scope < providerOnly {
			names = append(names, k.name)
		}
	}
	return names
}

func anyText(s string) (string, error)          { return s, nil }
func anyTexts(items []string) ([]string, error) { return items, nil }

func parseUser(s string) (string, error) {
	if s == "" || s[0] == '-' || strings.ContainsAny(s, " :/") || strings.Trim(s, "@") != s {
		return "", fmt.Errorf("%q is not a user name", s)
	}
	if why := jobs.AmbiguousWord(s); why != "" {
		return "", fmt.Errorf("%q is not a user name: %s", s, why)
	}
	return s, nil
}

// isAbsolute reports whether a path begins at the root or in a home directory.
func isAbsolute(s string) bool { return path.IsAbs(s) || s == "~" || strings.HasPrefix(s, "~/") }

// parseSSHConfig expands ~, because the path is passed to ssh.
func parseSSHConfig(s string) (string, error) {
	if !isAbsolute(s) {
		return "", fmt.Errorf("%q must be an absolute path (/… or ~/…)", s)
	}
	if rest, inHome := strings.CutPrefix(s, "~/"); inHome {
		s = filepath.Join(account.Current().Home, rest)
	}
	return s, nil
}

func parseIdentity(s string) (string, error) {
	if !isAbsolute(s) && !strings.HasPrefix(s, "%d/") {
		return "", fmt.Errorf("%q must be an absolute path (/… or ~/…)", s)
	}
	return s, nil
}

func parseWorkDir(s string) (string, error) {
	if !isAbsolute(s) {
		return "", fmt.Errorf("%q must be an absolute path on the host (/… or ~/…)", s)
	}
	return path.Clean(s), nil
}

func parseShareDir(s string) (string, error) {
	if !path.IsAbs(s) {
		return "", fmt.Errorf("%q must be an absolute path on the host (/…)", s)
	}
	return path.Clean(s), nil
}

func parseAddresses(items []string) ([]string, error) {
	if len(items) == 0 {
		return nil, errors.New("must not be an empty list; leave it out to use the name")
	}
	return items, nil
}

// parseJump returns an empty list, not nil, for "none": no gateway, whatever ssh_config has.
func parseJump(items []string) ([]string, error) {
	jumps := []string{}
	for _, item := range items {
		for one := range strings.SplitSeq(item, ",") {
			one = strings.TrimSpace(one)
			if one == "none" && len(items) == 1 && !strings.Contains(item, ",") {
				continue
			}
			if one == "" || one[0] == '-' || strings.ContainsAny(one, " /") {
				return nil, fmt.Errorf("%q is not a gateway; write [user@]host[:port], or none", one)
			}
			jumps = append(jumps, one)
		}
	}
	return jumps, nil
}

func parseQuietTimes(items []string) (list []Quiet, err error) {
	for _, item := range items {
		q, err := parseQuiet(item)
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

// parseFactor accepts a number from 1 to 100, as --straggler-factor does.
func parseFactor(v any) (float64, error) {
	f, err := decimal(v)
	if err == nil && !(f >= 1 && f <= 100) {
		err = fmt.Errorf("must be a number from 1 to 100, not %v", f)
	}
	return f, err
}

func parseOwner(s string) (string, error) {
	switch s {
	case "ignore":
		return "", nil
	case OwnerPause, OwnerSuspend:
		return s, nil
	}
	return "", fmt.Errorf(`must be "pause", "suspend" or "ignore", not %q`, s)
}

func parseTags(items []string) (tags []string, err error) {
	for _, item := range items {
		for t := range strings.SplitSeq(item, ",") {
			t = strings.TrimSpace(t)
			if t == "" || len(t) > 63 ||
				strings.ContainsFunc(t, func(r rune) bool {
					return !isNameRune(r) && r != ':' && r != '=' && r != '+'
				}) {
				return nil, fmt.Errorf("%q is not a tag; letters, digits and . _ - : = + are allowed, at most 63", t)
			}
			tags = append(tags, t)
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags), nil
}

// keptPattern matches an item of `queues`.
var keptPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.*?\S)(?: slots=([1-9]\d{0,3}))?(?: gpus=([1-9]\d{0,3}))?$`)
})

func parseKeptParts(items []string) (list []KeptPart, err error) {
	for _, item := range items {
		m := keptPattern().FindStringSubmatch(item)
		if m == nil || strings.Contains(m[1], "slots=") || strings.Contains(m[1], "gpus=") {
			return nil, fmt.Errorf(
				`%q is not one of "QUEUE", "QUEUE slots=N", "QUEUE gpus=N", and "QUEUE slots=N gpus=N"`, item,
			)
		}
		if slices.ContainsFunc(list, func(k KeptPart) bool { return k.Queue == m[1] }) {
			return nil, fmt.Errorf("the queue %s is given twice", m[1])
		}
		slots, _ := strconv.Atoi(m[2])
		gpus, _ := strconv.Atoi(m[3])
		list = append(list, KeptPart{m[1], slots, gpus})
	}
	return list, nil
}

// setGPUIDs accepts the number of a device, or a list of such numbers.
func setGPUIDs(d *draft, v any) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	d.host.GPUIDs = []int{}
	for _, one := range list {
		n, err := strconv.Atoi(fmt.Sprint(one))
		if err != nil || n < 0 || n >= jobs.MaxGPUs {
			return fmt.Errorf("must be numbers of devices, such as [0, 2], not %v", one)
		}
		d.host.GPUIDs = append(d.host.GPUIDs, n)
	}
	slices.Sort(d.host.GPUIDs)
	d.host.GPUIDs = slices.Compact(d.host.GPUIDs)
	return nil
}

// setLink accepts ssh, local, or a command: a text that is split as by a shell, or a list.
func setLink(d *draft, v any) error {
	var argv []string
	switch s, isText := v.(string); {
	case s == "ssh", s == "local":
		d.host.Link, d.host.Command, d.host.Shells = s, nil, 0
		return nil
	case s == "srun" && d.table == "provider":
		argv = []string{s} // completed by completeSlurm
	case isText:
		s, err := oneLine(v)
		if err == nil {
			argv, err = splitWords(s)
		}
		switch {
		case err != nil:
			return err
		case len(argv) == 0 || len(argv) == 1 && !strings.Contains(argv[0], "/"): // a typing error, most likely
			return fmt.Errorf(`%q is neither "ssh" nor "local"; a command of one word is written as a list: [%q]`, s, s)
		case argv[0] == "":
			return fmt.Errorf("%q is a command without a program", s)
		}
	default:
		var err error
		if argv, err = textList(v); err != nil {
			return err
		}
		if len(argv) == 0 {
			return errors.New(`must be "ssh", "local" or a command`)
		}
	}
	d.host.Link, d.host.Command, d.host.Shells = "command", argv, RemoteShells(argv)
	return nil
}

func setReserve(d *draft, v any) error {
	n, err := wholeNumber(v, 0, jobs.MaxSlots)
	if err == nil {
		d.reserve = &n
	}
	return err
}

// setSlots accepts 8, "8", "cores" or "cores-1".
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
		d.slots = &slotsValue{allCores: true}
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
		d.slots = &slotsValue{less: n}
	case n < 1:
		return errors.New("must be at least 1; to leave a host out, remove it from the file")
	default:
		d.slots = &slotsValue{fixed: n}
	}
	return nil
}

// slotRule combines `slots` and `reserve` of a host, own, with those of [defaults], def.
// Without either, one core is reserved. It reports what is wrong with the host's own `reserve`,
// which is on that line.
func (r *inventoryReader) slotRule(line int, def, own *draft) SlotRule {
	slots, reserve := cmp.Or(own.slots, def.slots), cmp.Or(own.reserve, def.reserve)
	switch {
	case slots != nil && slots.fixed > 0:
		if own.reserve != nil {
			r.addWarning(line, "reserve does nothing here: slots is the number %d", slots.fixed)
		}
		return SlotRule{Fixed: slots.fixed}
	case slots != nil && !slots.allCores && own.reserve == nil:
		return SlotRule{Less: slots.less}
	case slots != nil && !slots.allCores && own.slots != nil && *own.reserve != slots.less:
		r.addProblem(line, "reserve = %d contradicts slots = \"cores-%d\"; give only one of them",
			*own.reserve, slots.less)
		return SlotRule{}
	case reserve != nil:
		return SlotRule{Less: *reserve}
	case slots != nil: // "cores", all of them
		return SlotRule{}
	}
	return SlotRule{Less: 1}
}
