//go:build linux

package remote

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// The helper of a run, and each of its supervisors that uses slots, hold a claim: a file that says
// what the run wants, or what the supervisor uses. docs/sharing.md describes the file.
const (
	claimPrefix = "claim-"
	claimBytes  = 512 // of every claim, so that a write never changes the size
	maxRunName  = 200 // bytes of the name of a run in a claim
)

var claimMagic = magic{"DSH", &jobs.FormatSlots}

// claimText is the text of a claim.
type claimText struct {
	run    string // uid
	group  string // of the claims of a run and a host, see claimGroup
	name   string // of the run
	want   int    // slots
	weight int    // of the run; 0 in the claim of a supervisor
	slots  int    // of the host by the inventory of the run
	held   int    // slots
	memory int64  // bytes that the job of the supervisor may use
	used   int    // decayed usage of the user in hundredths of a slot; 0 in the claim of a supervisor
	tried  int    // slots of held of which the supervisor does not know yet whether it may hold them
}

// claimFields are the fields of the file, in the order of claimText. The last ones may be missing, and
// later versions may append more.
type claimFields struct{ Fields []string }

const numClaimFields = 8 // at least

func (c *claimText) bytes() []byte {
	name := strings.ToValidUTF8(c.name[:min(len(c.name), maxRunName)], "")
	b := appendSealed(nil, claimMagic, claimFields{[]string{c.run, c.group, name, strconv.Itoa(c.want),
		strconv.Itoa(c.weight), strconv.Itoa(c.slots), strconv.Itoa(c.held), strconv.FormatInt(c.memory, 10),
		strconv.Itoa(c.used), strconv.Itoa(c.tried)}})
	return append(b, make([]byte, max(0, claimBytes-len(b)))...)
}

// parse returns the text of a claim.
func (f *claimFields) parse() (c claimText, err error) {
	number := func(text string, limit int64) int64 {
		n, nerr := strconv.ParseInt(text, 10, 64)
		if nerr != nil || n < 0 || n > limit {
			err = fmt.Errorf("%w: wrong fields", errSeal)
		}
		return n
	}
	if len(f.Fields) < numClaimFields {
		return c, fmt.Errorf("%w: wrong fields", errSeal)
	}
	c = claimText{run: f.Fields[0], group: f.Fields[1], name: f.Fields[2]}
	c.want, c.weight = int(number(f.Fields[3], maxSlots)), int(number(f.Fields[4], hosts.MaxShareWeight))
	c.slots, c.held = int(number(f.Fields[5], maxSlots)), int(number(f.Fields[6], maxSlots))
	c.memory = number(f.Fields[7], 1<<60)
	if len(f.Fields) > numClaimFields {
		c.used = int(number(f.Fields[8], 100*maxSlots))
	}
	if len(f.Fields) > numClaimFields+1 {
		c.tried = int(number(f.Fields[9], int64(c.held)))
	}
	return c, err
}

// claimGroup returns the name of the group of claims of a run on a host of its inventory.
func claimGroup(run, host string) string {
	return fmt.Sprintf("%.8x", sha256.Sum256([]byte(run+"/"+host)))
}

// claimFiles returns the prefix of the names of the claims of a group.
func claimFiles(group string) string { return claimPrefix + group + "." }

// claim is a claim of this process.
type claim struct {
	heldFile
	text claimText // as written
}

// write makes the claim say text. It creates the file if it is not there.
func (c *claim) write(dirfd int, dir string, text claimText) (err error) {
	if c.fd != 0 && c.text == text && c.inPlace() == nil {
		return nil
	}
	c.text = claimText{}
	if err = c.heldFile.write(dirfd, dir, claimFiles(text.group), text.bytes()); err == nil {
		c.text = text
	}
	return err
}

// update makes an existing claim say text. Errors are ignored: the claim then says more than is true.
func (c *claim) update(text claimText) {
	if c.fd != 0 && c.text != text && pwrite(c.fd, c.path, text.bytes(), 0) == nil {
		c.text = text
	}
}

// seenClaim is what the live claims of a group say. Its Run is the group.
type seenClaim struct {
	hosts.SlotClaim
	name  string // of the run
	tried int    // slots of Held that supervisors may have to take back
}

// indexOfOwn returns the index of the claims of our user and this group, or -1.
func indexOfOwn(claims []seenClaim, group string) int {
	return slices.IndexFunc(claims, func(c seenClaim) bool { return c.User == ownUID && c.Run == group })
}

// readClaims returns the claims in the shared directory by user and group, and messages about files
// that are no claims, at most maxReportedClaims, with a key for each. Of the claims of our own run,
// only those of the group own count: a run may have this machine under several names. Files stay open
// in kept unless it is nil.
func readClaims(dirfd int, dir, own, run string, kept *keptFiles) (claims []seenClaim,
	invalid map[string]string, err error) {
	invalid = map[string]string{}
	ignored := func(name string, why error) {
		text := fmt.Sprintf("%s/%s does not count as a claim of slots: %s", dir, name, why)
		if many, ok := errors.AsType[tooManyError](why); ok {
			name = strconv.Itoa(many.uid) // reported once
			text = fmt.Sprintf("claims of slots in %s: %s", dir, why)
		}
		if len(invalid) < maxReportedClaims {
			invalid[name] = text
		}
	}
	type owner struct {
		uid   int
		group string
	}
	index := map[owner]int{}
	err = eachShared(dirfd, dir, claimPrefix, kept, func(f *sharedFile) {
		held, lerr := f.isLocked(byteRange{0, 1})
		if lerr != nil {
			return
		}
		f.tend(dirfd, held)
		if !held {
			return
		}
		text, perr := f.readClaim()
		switch {
		case perr != nil && f.st.Mode&0o044 == 0:
			return // of ours, or seen by root: being created
		case perr != nil:
			ignored(f.name, fmt.Errorf("its text, by %s, cannot be read: %w", userName(f.owner()), perr))
			return
		case f.owner() == ownUID && text.run == run && text.group != own:
			return
		}
		key := owner{f.owner(), text.group}
		i, ok := index[key]
		if !ok {
			i, index[key] = len(claims), len(claims)
			claims = append(claims, seenClaim{SlotClaim: hosts.SlotClaim{User: f.owner(), Run: text.group},
				name: text.name})
		}
		c := &claims[i]
		c.Want, c.Weight, c.Slots = max(c.Want, text.want), max(c.Weight, text.weight), max(c.Slots, text.slots)
		c.Held, c.tried = min(c.Held+text.held, maxSlots), min(c.tried+text.tried, maxSlots)
		c.Memory += min(text.memory, 1<<60-c.Memory)
		c.Used = max(c.Used, float64(text.used)/100)
	}, ignored)
	order := make([]int, len(claims)) // a sort of claims would make the program larger
	for i := range claims {
		order[i], claims[i].Weight = i, max(claims[i].Weight, 1) // 0: no helper of the run lives
	}
	slices.SortFunc(order, func(i, k int) int {
		a, b := &claims[i], &claims[k]
		return cmp.Or(cmp.Compare(a.User, b.User), strings.Compare(a.Run, b.Run))
	})
	sorted := make([]seenClaim, 0, len(claims))
	for _, i := range order {
		sorted = append(sorted, claims[i])
	}
	return sorted, invalid, err
}

// readClaim reads the text of a claim.
func (f *sharedFile) readClaim() (text claimText, err error) {
	if f.st.Size > claimBytes {
		return text, fmt.Errorf("it has %d bytes", f.st.Size)
	}
	var fields claimFields
	raw, err := readSealed(f, claimBytes, claimMagic, &fields)
	if err != nil {
		return text, err
	}
	if raw == nil { // as at the last look
		return f.text, nil
	}
	text, err = fields.parse()
	if err == nil {
		f.raw, f.text = raw, text
	}
	return text, err
}

func plainClaims(seen []seenClaim) (claims []hosts.SlotClaim) {
	for _, c := range seen {
		claims = append(claims, c.SlotClaim)
	}
	return claims
}
