package sim

import (
	"math/rand/v2"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/share"
)

// neighbor is the second dispatcher: what the run of another user has on a host. It obeys
// the rules that helpers and supervisors obey. Its choices do not come from the tape, so
// worlds without neighbors are what they were.
type neighbor struct {
	h    *host
	boot int // of the host; what was started before is dead
	rng  *rand.Rand
	want int
	held int
	life int // counts its deaths
}

// lastSlot is how long a user waits for a slot before it uses one though others hold all.
const lastSlot = 30 * time.Second

// shared reports whether other users are on the hosts of this world.
func (w *World) shared() bool { return len(w.specs)%3 == 1 }

// setShare takes in what the run wants. The first one wakes the neighbor.
func (p *helper) setShare(m hosts.Share) {
	h := p.h
	if p.superseded() {
		return
	}
	if h.wants = m; h.other == nil {
		h.other = &neighbor{h: h, boot: h.boot, rng: rand.New(rand.NewPCG(uint64(len(h.w.specs)), uint64(h.idx)))}
		h.other.act()
	}
	h.fill()
}

// act starts what it may, and now and then dies with all that it runs.
func (b *neighbor) act() {
	h, w := b.h, b.h.w
	if b.boot != h.boot {
		b.boot, b.held = h.boot, 0
		b.life++
	}
	switch n := b.rng.IntN(20); {
	case w.calm():
		b.want = 0
	case n == 0:
		w.logf("the neighbor on %s dies", h.name)
		b.life, b.held, b.want = b.life+1, 0, 0
	case n < 6:
		b.want = b.rng.IntN(h.wants.Slots + 2)
	}
	for b.held < share.Bound(h.wants.Slots, nil, h.claims(0), 1, 0.5) {
		b.held++ // published, then counted
		if !share.Fits(h.wants.Slots, h.claims(0), 1, false) {
			b.held--
			break
		}
		w.checkShared(h, false)
		life := b.life
		w.after(time.Duration(b.rng.Int64N(int64(time.Minute))), func() {
			if b.life == life && b.boot == h.boot {
				b.held--
				h.fill()
			}
		})
	}
	if b.want > 0 || b.held > 0 || !w.calm() {
		w.after(time.Second+time.Duration(b.rng.Int64N(int64(4*time.Second))), b.act)
	}
}

// claims returns what its helpers and supervisors have published on the host: that of the run,
// with more slots that it is about to use, and that of the neighbor.
func (h *host) claims(more int) []share.Claim {
	us := share.Claim{User: 1, Run: "us", Weight: 1, Held: h.busy() + more}
	if p := h.helper; p != nil && p.alive {
		us.Want = max(h.wants.Want, 1)
	}
	if h.other == nil || h.other.boot != h.boot {
		return []share.Claim{us}
	}
	return []share.Claim{us, {User: 2, Run: "neighbor", Weight: 1, Want: h.other.want, Held: h.other.held}}
}

// fits reports whether a supervisor that has published n slots may keep them. If not, it
// tries again.
func (h *host) fits(n int) bool {
	if h.wants.Weight == 0 || share.Fits(h.wants.Slots, h.claims(n), 0, h.last) {
		return true
	}
	if !h.retries {
		h.retries = true
		h.w.after(time.Second, func() {
			h.retries = false
			h.fill()
		})
	}
	return false
}

// sharing is what the helper reports of the neighbor.
func (h *host) sharing() *hosts.Sharing {
	claims := h.claims(0)
	if h.wants.Weight == 0 || len(claims) == 1 || claims[1].Want+claims[1].Held == 0 {
		h.last, h.starved = false, 0
		return nil
	}
	bound := share.Bound(h.wants.Slots, nil, claims, 0, 0.5)
	switch {
	case bound > 0:
		h.last, h.starved = false, 0
	case h.starved == 0:
		h.starved = h.w.now
	case h.w.now-h.starved > lastSlot:
		h.last, bound = true, 1
	}
	return &hosts.Sharing{Slots: bound, Held: claims[1].Held, Users: []hosts.SharedUser{{Name: "neighbor", Slots: claims[1].Held}}}
}

// checkShared holds, when something has started on a shared host, that no more slots are
// held than there are. Only a user's last slot may be one more.
func (w *World) checkShared(h *host, ours bool) {
	if h.other == nil || h.wants.Weight == 0 || h.other.boot != h.boot {
		return
	}
	held := h.busy()
	if ours && held == 1 && h.last {
		return
	}
	if slots := h.wants.Slots; held+h.other.held > slots && h.other.held > 0 && (ours || held <= slots) {
		w.broken(SharedSlotsHold, "%s has %d slots for all; the run has %d of them and its neighbor %d", h.name, slots, held, h.other.held)
	}
}
