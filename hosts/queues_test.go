package hosts

import (
	"fmt"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestQueues holds K10: what a host keeps for queues, and that nonsense is refused with file
// and line.
func TestQueues(t *testing.T) {
	for _, tt := range []struct{ says, kept, wrong string }{
		{`queues = "urgent"`, "urgent", ""},
		{`queues = ["urgent", "late night slots=2 gpus=1", "x gpus=1"]`, "urgent, late night slots=2 gpus=1, x gpus=1", ""},
		{`queues = []`, "", ""},
		{`queues = ["a slots=3", "b slots=2"]`, "", "hosts.toml:4: queues: 5 slots are kept, and the host has 4"},
		{`queues = "a gpus=3"`, "", "hosts.toml:4: queues: 3 GPUs are kept, and the host has 2"},
		{`queues = "a slots=0"`, "", `hosts.toml:4: queues: "a slots=0" is none of "QUEUE"`},
		{`queues = "a slots=1 slots=2"`, "", "is none of"},
		{`queues = ["a", "a slots=1"]`, "", "hosts.toml:4: queues: the queue a is there twice"},
		{`queues = "slots=2"`, "", `hosts.toml:4: queues: "slots=2" is none of`},
		{`queues = 2`, "", "hosts.toml:4: queues: must be a text or a list of texts"},
	} {
		inv, _, err := Parse(fmt.Appendf(nil, "[[host]]\nname = 'a'\nslots = 4\n%s\ngpus = 2\n", tt.says), "hosts.toml")
		switch {
		case tt.wrong != "":
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s: %v, want %s", tt.says, err, tt.wrong)
			}
		case err != nil || inv.Hosts[0].KeptText() != tt.kept:
			t.Errorf("%s: %v, %v", tt.says, inv, err)
		}
	}
}

// TestIsOpenTo: who may use a host, and how much of it.
func TestIsOpenTo(t *testing.T) {
	h := &Host{Queues: []Kept{{Queue: "a", Slots: 2}, {Queue: "b", GPUs: 1}}}
	if !h.IsOpenTo("") || !h.IsOpenTo("a") {
		t.Error("a host that keeps parts is not open to all queues")
	}
	slots, gpus := h.KeptFrom("b")
	if slots != 2 || gpus != 0 {
		t.Errorf("%d slots and %d GPUs are kept from b", slots, gpus)
	}
	h.Queues = append(h.Queues, Kept{Queue: "c"})
	if h.IsOpenTo("") || !h.IsOpenTo("a") || !h.IsOpenTo("c") {
		t.Error("a host that is kept is open to other queues than those that it names")
	}
}

// TestInventoryTokens holds T7: the counts of [tokens].
func TestInventoryTokens(t *testing.T) {
	text := "[tokens]\nmatlab = 5\nansys = 0\n[[host]]\nname = 'a'\n"
	inv, _, err := Parse([]byte(text), "hosts.toml")
	if err != nil || fmt.Sprint(inv.TokensWith([]jobs.Token{{Name: "ansys", Count: 2}})) != "[ansys:2 matlab:5]" {
		t.Errorf("%+v, %v", inv, err)
	}
	for says, wrong := range map[string]string{
		"matlab = -1": "hosts.toml:2: matlab: must be from 0 to 1000000", "matlab = '5'": "hosts.toml:2: matlab: must be a whole number",
		"'a b' = 1": `hosts.toml:2: a b: "a b" is not a name of tokens`,
	} {
		_, _, err := Parse([]byte(strings.Replace(text, "matlab = 5", says, 1)), "hosts.toml")
		if err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %s", says, err, wrong)
		}
	}
}
