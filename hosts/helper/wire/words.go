package wire

import (
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"

	"dcs-tui/hosts"
)

// kind is one message type and its codec.
type kind struct {
	word string
	typ  reflect.Type
	codec
}

// kinds holds every message that can travel, by word and by type.
var (
	kindOfWord = map[string]*kind{}
	kindOfType = map[reflect.Type]*kind{}
	greeting   string // the first line of a stream, newline included
)

func init() {
	for _, m := range []hosts.Message{
		hosts.Open{}, hosts.Ping{}, hosts.Launch{}, hosts.Limit{}, hosts.Withdraw{}, hosts.Kill{}, hosts.Probe{},
		hosts.Look{}, hosts.List{}, hosts.Read{}, hosts.Bye{},
		hosts.Hello{}, hosts.Beat{}, hosts.Started{}, hosts.Exits{}, hosts.Withdrawn{}, hosts.Refused{},
		hosts.Probed{}, hosts.Looked{}, hosts.Listed{}, hosts.Trouble{}, hosts.Chunk{},
	} {
		t := reflect.TypeOf(m)
		k := &kind{m.Word(), t, codecFor(t)}
		kindOfWord[k.word], kindOfType[t] = k, k
	}
	greeting = greetingFor(hosts.ProtocolVersion)
}

func greetingFor(version int) string {
	var shapes []string
	for w, k := range kindOfWord {
		shapes = append(shapes, w+" "+k.shape)
	}
	slices.Sort(shapes)
	return fmt.Sprintf("dcs-wire %d %08x\n", version, crc32.Checksum([]byte(strings.Join(shapes, "\n")), castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
