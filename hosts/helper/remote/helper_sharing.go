//go:build linux

package remote

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/account"
	"dcs-tui/jobs"
)

// sharing is the helper's part in sharing the host with other runs and users. It publishes what
// the run wants and computes how many slots the run may use. mu guards all fields but request, now,
// and changed.
type sharing struct {
	mu             sync.Mutex // held during I/O in the shared directory
	claim          claim
	files          keptFiles     // claims of others
	starvingSince  time.Duration // boot clock: since when the run's part is empty; 0: it is not
	mayUseLastSlot bool          // the run may therefore use one slot
	kept           hosts.KeptSlots
	claimRemoved   bool // the claim was removed at the end of the run
	reported       map[string]bool
	usage          hosts.SlotUsage
	offers         hosts.SlotOffers

	request atomic.Pointer[hosts.Share]   // from the dispatcher; nil: it shares nothing
	current atomic.Pointer[hosts.Sharing] // nil: nobody else uses the host
	changed chan struct{}                 // capacity 1: the run's share has changed
}

// maxReportedClaims bounds the reports about files of others.
const maxReportedClaims = 8

// setShare records what the run wants.
func (h *helper) setShare(m *hosts.Share) {
	m.Slots, m.Want = min(max(m.Slots, 1)+h.otherSlots, maxSlots), min(max(m.Want, 0), maxSlots)
	m.Rule = min(max(m.Rule+h.otherSlots, m.Slots), maxSlots)
	h.sharing.request.Store(m)
	if !h.isSuperseded() {
		h.control.setShare(*m) // before the next Launch is handled
	}
	select {
	case h.sharing.changed <- struct{}{}:
	default:
	}
}

// shareCost bounds the CPU time of looks at the claims of others, unless they would become rarer than
// heartbeats: the pause is so many times the CPU time of the last one.
const shareCost = 6000

// sharePause returns the pause before the next look at the claims of others. cost is the CPU time of
// the last look.
func sharePause(heartbeat, cost time.Duration, isShared bool) time.Duration {
	if !isShared {
		return heartbeat
	}
	return min(heartbeat, max(heartbeat/3, shareCost*cost))
}

// watchShare looks at the claims of others regularly. It may hang with the disk.
func (h *helper) watchShare() {
	var cost time.Duration
	for {
		select {
		case <-h.sharing.changed:
		case <-time.After(sharePause(h.limits.heartbeat, cost, h.sharing.current.Load() != nil)):
		}
		if h.hasEnded() || h.isSuperseded() {
			continue
		}
		before := h.sharing.current.Load()
		began := cpuTime()
		h.updateShare(h.sharing.request.Load(), h.limits.lastSlot)
		cost = cpuTime() - began
		if now := h.sharing.current.Load(); (now == nil) != (before == nil) || now != nil && now.Slots != before.Slots {
			h.files.sendHeartbeatNow()
		}
	}
}

// updateShare publishes what the run wants and computes how many slots it may use. If the run wants
// nothing, it only computes.
func (h *helper) updateShare(request *hosts.Share, patience time.Duration) {
	s, dir := &h.sharing, h.config.ShareDir
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claimRemoved {
		return
	}
	active := request != nil
	number := hosts.Share{Rule: h.slots + h.otherSlots, Slots: h.slots + h.otherSlots}
	if active {
		number = *request
	}
	own := claimGroup(h.config.Run, h.config.Host)
	dirfd, err := openShare(dir, active)
	if err == nil {
		defer closeFile(dirfd, dir)
		if active {
			err = s.claim.write(dirfd, dir, claimText{run: h.config.Run, group: own, name: h.config.RunName,
				want: request.Want, weight: h.open.ShareWeight, slots: request.Rule,
				used: int(100*s.usage.Mean(ownUID) + 0.5)})
		}
	}
	var invalid map[string]string
	var claims []seenClaim
	if err == nil {
		claims, invalid, err = readClaims(dirfd, dir, own, h.config.Run, &s.files)
	}
	if err != nil {
		s.files.closeAll()
		s.current.Store(nil)
		if active && !errors.Is(err, fs.ErrNotExist) {
			h.reportOnce(dir, fmt.Sprintf("%s does not share its slots with other users: "+
				"%v (share_dir in hosts.toml names another directory)", h.config.Host, err))
		}
		return
	}
	for name, text := range invalid {
		h.reportOnce(name, text)
	}
	me := indexOfOwn(claims, own)
	if me < 0 { // compute the part that the run would get
		me = len(claims)
		claims = append(claims, seenClaim{SlotClaim: hosts.SlotClaim{User: ownUID, Run: own, Weight: 1,
			Want: h.slots}})
	}
	list := plainClaims(claims)
	// A slot that a supervisor only tries to get is not held.
	list[me].Held = max(0, list[me].Held-claims[me].tried)
	slots := hosts.SharedSlots(number, list)
	shares := readShares(dir, list)
	s.countUsage(dirfd, dir, shares.halfLife, slots, list, me, active)
	turn := offset(dirfd, dir)
	beyond := s.kept.Mark(slots, shares.weights, list, me, turn) // slots that the run may hold beside all others
	var gpus map[int][]int
	if s.files.hasOthers {
		gpus = gpuUsers(dirfd, dir)
	}
	if len(claims) == 1 && len(gpus) == 0 {
		s.mayUseLastSlot, s.starvingSince = false, 0
		h.control.word(ctlLast).Store(0)
		s.current.Store(nil)
		return
	}
	list[me].Want = max(list[me].Want, 1) // the part that it would get if it wanted something
	bound := hosts.SlotBound(slots, shares.weights, list, me, turn)
	s.markStarving(bound, patience)
	if s.mayUseLastSlot {
		beyond = max(beyond, 1)
	}
	bound = min(max(bound, beyond), h.allowed.slotBound(list, me, turn)) // holds for the last slot, too
	h.control.word(ctlLast).Store(int64(beyond))
	total := h.memoryTotal.Load()
	if total == 0 { // before the first heartbeat
		total = readMemory().total
	}
	s.current.Store(&hosts.Sharing{Slots: bound, Held: hosts.HeldSlots(slots, list, me),
		Memory: h.allowed.memoryOfOthers(total, list, me), Users: usersOf(claims, gpus, own)})
}

// markStarving sets mayUseLastSlot if the part of the run has been empty for longer than patience. It
// may then use one slot although others hold all of them.
func (s *sharing) markStarving(bound int, patience time.Duration) {
	switch now := uptime(); {
	case bound > 0:
		s.mayUseLastSlot, s.starvingSince = false, 0
	case s.starvingSince == 0:
		s.starvingSince = now
	case now-s.starvingSince >= patience:
		s.mayUseLastSlot = true
	}
}

// reportOnce reports a problem with a file, once per name.
func (h *helper) reportOnce(name, text string) {
	s := &h.sharing
	if h.outbox == nil || s.reported[name] || len(s.reported) >= maxReportedClaims {
		return
	}
	jobs.Insert(&s.reported, name, true)
	if len(s.reported) == maxReportedClaims {
		text += "; further such files are not reported"
	}
	h.reportTrouble("%s", text)
}

// removeClaims removes the claims of the run at its end, also those of earlier helpers.
func (h *helper) removeClaims() {
	h.sharing.mu.Lock()
	defer h.sharing.mu.Unlock()
	h.sharing.claimRemoved = true
	dirfd, err := openShare(h.config.ShareDir, false)
	if err != nil {
		return
	}
	defer closeFile(dirfd, h.config.ShareDir)
	h.sharing.claim.remove()
	names, _ := remainingNames(dirfd, h.config.ShareDir)
	for _, name := range names {
		if strings.HasPrefix(name, claimFiles(claimGroup(h.config.Run, h.config.Host))) {
			unlinkat(dirfd, name, 0) // fails for files of others because of the sticky bit
		}
	}
}

// offset determines which runs get the remainders of the division on this host. It is equal for all
// processes that look in the same minute, differs between hosts, and changes, so that each run gets
// a turn.
func offset(dirfd int, dir string) float64 {
	var st unix.Stat_t
	fstat(dirfd, dir, &st)
	hash := fnv.New32a()
	fmt.Fprint(hash, bootID(), st.Dev, st.Ino)
	_, f := math.Modf(float64(hash.Sum32())/(1<<32) + float64(uptime()/time.Minute)*math.Phi)
	return f
}

// countUsage completes the claims with the usage of their users, and with who has declined slots, if
// usage counts. active is set for a run that shares the host.
func (s *sharing) countUsage(dirfd int, dir string, halfLife time.Duration, slots int, claims []hosts.SlotClaim,
	me int, active bool) {
	if halfLife == 0 {
		s.usage, s.offers = hosts.SlotUsage{}, hosts.SlotOffers{}
		for i := range claims {
			claims[i].Used = 0
		}
		return
	}
	now := uptime()
	updateUsage(&s.usage, dirfd, dir, now, halfLife, slots, claims, active)
	s.usage.SetUsed(ownUID, claims)
	s.offers.Mark(now, slots, claims, me)
}

// sharesFile holds the weights of users, one "USER WEIGHT" per line, and the half-life of their usage,
// "half-life TIME". Only root may write it.
const sharesFile = "shares"

// shares is what root has written to sharesFile.
type shares struct {
	weights  map[int]int
	halfLife time.Duration // of usage; 0: usage does not count
}

// readShares returns the half-life and the weights of the users of claims. It returns nothing if the
// file is missing, is a link, does not belong to root, can be written by others, or is too long.
func readShares(dir string, claims []hosts.SlotClaim) (s shares) {
	text, err := readTrusted(dir+"/"+sharesFile, 0, maxTrustedFile)
	if err != nil {
		return s
	}
	s.weights = map[int]int{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		if f[0] == "half-life" {
			s.halfLife, _ = jobs.ParseDuration(f[1])
			continue
		}
		for _, c := range claims {
			if n, err := strconv.Atoi(f[1]); err == nil && (f[0] == userName(c.User) || f[0] == strconv.Itoa(c.User)) {
				s.weights[c.User] = n
			}
		}
	}
	return s
}

// usersOf describes what each user uses. Users with the most slots come first. own is the group of our
// run.
func usersOf(claims []seenClaim, gpus map[int][]int, own string) (list []hosts.SharedUser) {
	at := map[int]int{}
	user := func(uid int) *hosts.SharedUser {
		if _, ok := at[uid]; !ok {
			at[uid] = len(list)
			list = append(list, hosts.SharedUser{Name: userName(uid), GPUs: gpus[uid]})
		}
		return &list[at[uid]]
	}
	for _, c := range claims {
		if c.name == "" {
			continue // our own run, without a claim
		}
		u := user(c.User)
		u.Slots += c.Held
		u.Memory += c.Memory
		u.Want += max(c.Want, c.Held)
		if !slices.Contains(u.Runs, c.name) { // several hosts of a run can be one machine
			u.Runs = append(u.Runs, c.name)
		}
		if c.User == ownUID && c.Run != own && c.Held > 0 && !slices.Contains(u.OwnRuns, c.name) {
			u.OwnRuns = append(u.OwnRuns, c.name)
		}
	}
	for uid := range gpus {
		user(uid)
	}
	slices.SortStableFunc(list, func(a, b hosts.SharedUser) int {
		return cmp.Or(b.Slots-a.Slots, strings.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), hosts.MaxSharedUsers)]
}

var userNames sync.Map // by uid

// userName returns the name of a user. A user who is not in /etc/passwd is called "user UID" until
// getent has found a name. userName does not wait for it.
func userName(uid int) string {
	if name, ok := userNames.Load(uid); ok {
		return name.(string)
	}
	key := strconv.Itoa(uid)
	passwd, _ := os.ReadFile("/etc/passwd")
	u, inFile := account.FindIn(string(passwd), key)
	name, known := userNames.LoadOrStore(uid, cmp.Or(u.Name, "user "+key))
	if !known && !inFile {
		go func() {
			if u, found := account.Find(key); found {
				userNames.Store(uid, u.Name)
			}
		}()
	}
	return name.(string)
}
