package helper

import (
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"
	"sync"

	"dcs-tui/hosts"
)

// kind is one message type and its codec.
type kind struct {
	name       string
	typ        reflect.Type
	maxPayload int // bytes
	codec
}

// catalog holds all types of messages.
type catalog struct {
	byKind   map[string]*kind
	byType   map[reflect.Type]*kind
	greeting string // the first line of a stream, including its newline
}

// kinds returns the only catalog. It is created when it is first needed: supervisors do without it.
var kinds = sync.OnceValue(func() *catalog {
	c := &catalog{byKind: map[string]*kind{}, byType: map[reflect.Type]*kind{}}
	for _, m := range []hosts.Message{
		hosts.Open{}, hosts.Ping{}, hosts.Launch{}, hosts.Limit{}, hosts.Share{}, hosts.Withdraw{}, hosts.Kill{},
		hosts.Probe{},
		hosts.Inspect{}, hosts.List{}, hosts.Read{}, hosts.Pack{}, hosts.Bye{},
		hosts.Hello{}, hosts.Heartbeat{}, hosts.Started{}, hosts.Exits{}, hosts.Withdrawn{}, hosts.Refused{},
		hosts.Probed{}, hosts.Inspected{}, hosts.Listed{}, hosts.Trouble{}, hosts.Chunk{},
		hosts.Want{}, hosts.Piece{}, hosts.Resend{}, hosts.Returned{}, hosts.Store{}, hosts.Stored{},
	} {
		t := reflect.TypeOf(m)
		k := &kind{m.Kind(), t, maxPayload(m), codecFor(t)}
		c.byKind[k.name], c.byType[t] = k, k
	}
	c.greeting = c.greetingFor(hosts.ProtocolVersion)
	return c
})

// maxPayload returns the maximum number of bytes in the payload of a message.
func maxPayload(m hosts.Message) int {
	switch m.(type) {
	case hosts.Hello, hosts.Heartbeat, hosts.Started, hosts.Exits, hosts.Withdrawn, hosts.Refused, hosts.Probed,
		hosts.Listed,
		hosts.Trouble, hosts.Chunk, hosts.Want, hosts.Stored:
		return MaxReport
	}
	return MaxPayload // also of an Inspected, which is accepted only if it was asked for
}

func (c *catalog) greetingFor(version int) string {
	var shapes []string
	for w, k := range c.byKind {
		shapes = append(shapes, w+" "+k.shape)
	}
	slices.Sort(shapes)
	return fmt.Sprintf("dcs-wire %d %08x\n", version, crc32.Checksum([]byte(strings.Join(shapes, "\n")), castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
