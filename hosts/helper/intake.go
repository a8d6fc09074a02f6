package helper

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"dcs-tui/hosts"
)

// This file bounds what a host sends. Whatever comes from a host is counted here, in one place: its
// frames by intake.admit, and each text that is kept by allowance.keep. A host that works never
// reaches the bounds: it earns what it sends about attempts by what it is sent. The rest covers what
// a link can hold for a dispatcher that has slept, and some time without one.

// MaxReport is the maximum number of bytes in the payload of a frame from a host.
const MaxReport = 1 << 20

// The bounds for each host. A host that has used them up is refused.
const (
	// maxUnasked is the number of messages that a host may send without earning them. A message
	// counts once, and once more for each messageUnit bytes.
	maxUnasked  = 100_000
	messageUnit = 16 << 10
	// maxKept is the number of bytes of text (lines of standard error, troubles, warnings) that are
	// kept of a host without being earned. Each text counts keptOverhead bytes more than it has.
	maxKept      = 16 << 20
	keptOverhead = 100

	secondMessages, secondKept = 20, 1 << 10 // earned in each second
	// Earned by each attempt that is launched or asked for. An honest host sends at most four
	// messages about it.
	attemptMessages, attemptKept = 8, 512
	// Earned by each other message. For a List it pays the list of a million attempts.
	requestMessages, listMessages = 4, maxUnasked
)

// allowance is what a host may still send. It is kept across the links to the host. It is safe for
// concurrent use.
type allowance struct {
	mu             sync.Mutex
	messages, kept int       // less than 0: the host was refused
	at             time.Time // up to when time has been counted
}

func newAllowance() *allowance {
	return &allowance{messages: maxUnasked, kept: maxKept, at: time.Now()}
}

// addLocked adds what was earned by a request, and by the time since the last call.
func (a *allowance) addLocked(messages, kept int) {
	now := time.Now()
	seconds := int(min(now.Sub(a.at), 24*time.Hour) / time.Second)
	a.at = a.at.Add(time.Duration(seconds) * time.Second)
	if seconds == 24*60*60 {
		a.at = now
	}
	a.messages = min(max(a.messages, 0)+messages+seconds*secondMessages, maxUnasked)
	a.kept = min(max(a.kept, 0)+kept+seconds*secondKept, maxKept)
}

// keep reports whether a text of n bytes may be kept.
func (a *allowance) keep(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addLocked(0, 0)
	a.kept -= n + keptOverhead
	return a.kept >= 0
}

// earn adds what the host may send because m was sent to it.
func (a *allowance) earn(m hosts.Message) {
	messages, attempts := requestMessages, 0
	switch m := m.(type) {
	case *hosts.Launch:
		attempts = len(m.Jobs)
	case *hosts.Probe:
		attempts = len(m.Attempts)
	case *hosts.Kill:
		attempts = len(m.Attempts)
	case *hosts.Withdraw:
		attempts = len(m.Attempts)
	case *hosts.Inspect:
		attempts = len(m.Attempts)
	case *hosts.List:
		messages = listMessages
	case *hosts.Read:
		messages += m.Limit / messageUnit
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addLocked(messages+attempts*attemptMessages, attempts*attemptKept)
}

// intake decides which frames of a link are accepted. It is safe for concurrent use.
type intake struct {
	host string
	*allowance

	// Numbers of requests that have not been answered. Each is answered once, so a host that
	// answers more is refused at once. Guarded by allowance.mu.
	reads, stores, inspections int
}

// asked records that m is being sent.
func (in *intake) asked(m hosts.Message) {
	in.earn(m)
	in.mu.Lock()
	defer in.mu.Unlock()
	switch m.(type) {
	case *hosts.Read:
		in.reads++
	case *hosts.Store:
		in.stores++
	case *hosts.Inspect:
		in.inspections += maxInspectedParts
	}
}

// maxInspectedParts bounds the parts of an answer to an Inspect.
const maxInspectedParts = 4

// admit returns an error if the host must be refused because it has sent m, a frame of size bytes.
func (in *intake) admit(m hosts.Message, size int) error {
	in.mu.Lock()
	unasked := false
	switch m.(type) {
	case *hosts.Chunk:
		unasked = in.reads == 0
		in.reads--
	case *hosts.Stored:
		unasked = in.stores == 0
		in.stores--
	case *hosts.Inspected:
		unasked = in.inspections == 0
		in.inspections--
	}
	in.addLocked(0, 0)
	in.messages -= 1 + size/messageUnit
	tooMany := in.messages < 0
	in.mu.Unlock()
	switch {
	case unasked:
		return refusal(in.host, fmt.Errorf("%w: %q", errUnasked, m.Kind()))
	case tooMany:
		return refusal(in.host, errTooMany)
	}
	for _, text := range keptTexts(m) {
		if !in.keep(len(text)) {
			return refusal(in.host, errTooMuchText)
		}
	}
	return nil
}

// keptTexts returns the texts of a message that are recorded for people.
func keptTexts(m hosts.Message) []string {
	switch m := m.(type) {
	case *hosts.Trouble:
		return []string{m.Text}
	case *hosts.Hello:
		return m.Warnings
	}
	return nil
}

// refusal returns the error of a host that has used up its allowance.
func refusal(host string, err error) error {
	return &hosts.Error{Host: host, Class: hosts.Misconfigured, Err: err,
		Advice: "the host is not used for a minute; if this repeats, its helper is broken, or the host is hostile"}
}

var (
	errUnasked     = errors.New("it sent an answer that belongs to no question")
	errTooMany     = fmt.Errorf("it sent more than %d messages without being asked", maxUnasked)
	errTooMuchText = fmt.Errorf("it sent more than %d MiB of messages for people", maxKept>>20)
)
