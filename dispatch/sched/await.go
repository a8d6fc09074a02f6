package sched

import (
	"fmt"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// What the run waits for while hosts with open attempts are silent, and until when.

// awaitKind is why an attempt waits for a silent host.
type awaitKind uint8

const (
	awaitLostAfter awaitKind = iota // until lost_after, or until its lease has run out
	awaitFollower                   // another host of the outage is back, and this one may follow
	awaitOutage                     // until outage_after: the network may be the cause
	awaitAlive                      // its heartbeat file changes, so it is alive
	awaitForever                    // on_lost=wait
)

// await describes for how long an attempt waits for its silent host.
type await struct {
	kind  awaitKind
	until time.Duration // Time.Mono; 0 for awaitAlive and awaitForever
	cause string        // of awaitOutage: which hosts are silent
}

// awaitOf returns for how long an attempt waits for its silent host.
func (c *Core) awaitOf(f *inFlight, newest answers) await {
	h := f.host
	a := await{until: h.lostAt()}
	switch part, suspected := c.suspectedPart(h, newest); {
	case h.index < 0 || h.removed:
	case c.lostPolicy(c.table.Job(f.id.Job)) == jobs.OnLostWait:
		return await{kind: awaitForever}
	case h.isStopped():
	case suspected:
		a = await{kind: awaitOutage, cause: part.String(), until: h.lastReceivedAt + c.outageAfter(h)}
	case h.graceUntil > a.until:
		a.kind = awaitFollower
	}
	if a.until < h.graceUntil && !h.isStopped() && !h.removed {
		a.until = h.graceUntil
	}
	switch {
	case !f.started:
		a.until = max(a.until, c.leaseEnd(h))
	case c.isHeartbeatFileChanging(h):
		return await{kind: awaitAlive}
	}
	return a
}

// text describes an await as a continuation of a sentence about n attempts.
func (a await) text(now time.Duration, n int) string {
	again := text.Verb(n, "it is", "they are") + " queued again in " + text.Span(max(0, a.until-now))
	switch a.kind {
	case awaitForever:
		return "without a limit (on_lost=wait)"
	case awaitAlive:
		return "while the heartbeat file of the host changes"
	case awaitOutage:
		return a.cause + " is silent, so the network may be the cause; " + again + " (outage_after)"
	case awaitFollower:
		return "other hosts are back, and this one may follow; " + again
	}
	return again + " (lost_after)"
}

// awaitText describes, for one job, how long it waits for its silent host and how to end the wait.
func (c *Core) awaitText(now Time, f *inFlight) string {
	a := c.awaitOf(f, c.newestAnswers())
	text := a.text(now.Mono, 1)
	switch {
	case a.kind == awaitForever || a.kind == awaitAlive:
		text = "it waits for it " + text
	case a.until <= now.Mono:
		return ""
	}
	return fmt.Sprintf("; %s. dcs-tui requeue ends the wait; the attempt may still run there", text)
}

// orLonger returns b if it lasts longer than a, and a otherwise.
func (a await) orLonger(b await) await {
	if b.kind > a.kind || b.kind == a.kind && b.until > a.until {
		return b
	}
	return a
}

// longestAwait returns for how long the attempts of a silent host wait at most.
func (c *Core) longestAwait(h *host, newest answers) (longest await) {
	for f := h.oldest; f != nil; f = f.nextOnHost {
		longest = longest.orLonger(c.awaitOf(f, newest))
	}
	return longest
}

// AwaitView describes the silent hosts that open attempts wait for.
type AwaitView struct {
	Hosts    []string // in the order of the inventory
	Attempts int
	Text     string // how long they wait, and why; a sentence without a period
	HasLimit bool   // they do not wait in any case until a host is back or a person requeues a job
}

// Awaited returns the silent hosts that open attempts wait for. It is the zero value if there are
// none.
func (c *Core) Awaited(now Time) (v AwaitView) {
	var longest await
	var newest answers
	for h := range c.everyHost() {
		if h.linked || h.numOpen == 0 || now.Mono-h.lastReceivedAt < h.suspectAfter {
			continue
		}
		if newest == nil {
			newest = c.newestAnswers()
		}
		v.Hosts = append(v.Hosts, h.spec.Name)
		v.Attempts += h.numOpen
		longest = longest.orLonger(c.longestAwait(h, newest))
	}
	if len(v.Hosts) == 0 {
		return v
	}
	v.HasLimit = longest.kind != awaitAlive && longest.kind != awaitForever
	v.Text = fmt.Sprintf("%s %s for %s, which cannot be reached: %s", text.Plural(v.Attempts, "attempt"),
		text.Verb(v.Attempts, "waits", "wait"), listNames(v.Hosts), longest.text(now.Mono, v.Attempts))
	return v
}

// listNames joins the first names of a list for people.
func listNames(names []string) string {
	if len(names) > maxNamed {
		return fmt.Sprintf("%s and %d more hosts", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	}
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return names[0]
}

// silentText describes what becomes of the attempts on a silent host that a person has stopped or
// removed.
func (c *Core) silentText(h *host) string {
	a := c.longestAwait(h, c.newestAnswers())
	msg := a.text(c.now.Mono, h.numOpen)
	if a.kind == awaitAlive || a.kind == awaitForever {
		msg = fmt.Sprintf("%s %s; dcs-tui requeue ends the wait", text.Verb(h.numOpen, "it waits", "they wait"), msg)
	}
	return fmt.Sprintf("it cannot be reached, so its %s may still run there: %s",
		text.Plural(h.numOpen, "attempt"), msg)
}
