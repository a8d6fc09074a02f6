package hosts

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestMessagesAreBounded checks that no number or text of a message of a host is larger than it can
// be.
func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("w", 1<<20)
	b := &Heartbeat{Load: [3]float64{math.NaN(), math.Inf(1), -1}, Busy: 1e300, Ours: -3, MemFree: -5, DiskFree: -7,
		Running: -2,
		FSDelay: math.MaxInt64, Suspended: math.MaxInt64, Uptime: -1, Owner: Owner{Who: long}, LockedGPUs: []int{-1,
			1 << 40, 2},
		PartGPUs: slices.Repeat([]GPUPart{{3, 400}, {1 << 40, 1}, {1, 0}, {1, jobs.WholeGPU}, {1, 300}}, 10_000),
		Sharing:  &Sharing{Slots: 1 << 40, Held: -1, Memory: math.MaxInt64, Users: make([]SharedUser, 1000)}}
	Bound(b)
	if b.Load != [3]float64{} || b.Busy > jobs.MaxSlots || b.Ours != 0 || b.MemFree != -1 || b.DiskFree != -1 ||
		b.Running != 0 || b.FSDelay > maxWait || b.Suspended > maxWait ||
		b.Uptime != 0 || len(b.Owner.Who) > maxText || !slices.Equal(b.LockedGPUs, []int{2}) ||
		!slices.Equal(b.PartGPUs, []GPUPart{{1, 300}, {3, 400}}) {
		t.Errorf("heartbeat %+v", b)
	}
	if s := b.Sharing; s.Slots != 0 || s.Held != 0 || s.Memory > maxMem || len(s.Users) > MaxSharedUsers {
		t.Errorf("sharing %+v", s)
	}
	h := &Hello{Cores: -1, Slots: 1 << 40, MaxSlots: 1 << 40, GPUs: 1 << 40, MemBytes: math.MaxInt64,
		Warnings: slices.Repeat([]string{long}, 100)}
	Bound(h)
	if h.Cores != 1 || h.Slots > jobs.MaxSlots || h.MaxSlots > jobs.MaxSlots || h.GPUs > jobs.MaxGPUs ||
		h.MemBytes > maxMem ||
		len(h.Warnings) > maxWarnings || len(h.Warnings[0]) > maxText {
		t.Errorf("%d cores, %d slots of %d, %d GPUs, %d bytes", h.Cores, h.Slots, h.MaxSlots, h.GPUs, h.MemBytes)
	}
	wild := jobs.Outcome{Exit: 1 << 40, Started: 5, Ended: 1, CPU: -1, MaxRSSBytes: math.MaxInt64, Suspended: -1,
		Files: -1, Error: long}
	exits := &Exits{Jobs: []ExitedJob{{Slot: 1 << 40, Outcome: wild}}}
	again := wild
	probed := &Probed{Jobs: []ProbedJob{{Slot: -1, Outcome: &again, Why: long}, {Answer: HasExited}, {Answer: 200}}}
	Bound(exits)
	Bound(probed)
	for _, o := range []*jobs.Outcome{&exits.Jobs[0].Outcome, &again} {
		if o.Exit > 255 || o.Ended < o.Started || o.CPU < 0 || o.MaxRSSBytes > maxMem || o.Suspended < 0 ||
			o.Files < 0 || len(o.Error) > maxText {
			t.Errorf("outcome %+v", o)
		}
	}
	if p := probed.Jobs; exits.Jobs[0].Slot != 0 || p[0].Slot != 0 || len(p[0].Why) > maxText ||
		p[1].Answer != Unknown || p[2].Answer != Unknown {
		t.Errorf("exits %+v, probed %+v", exits.Jobs[0].Slot, p)
	}
	trouble, refused := &Trouble{Text: long}, &Refused{Why: long, GPUs: []int{-1}, Slots: math.MaxInt,
		Limit: jobs.ProcessLimit{Max: -1}}
	Bound(trouble)
	Bound(refused)
	if len(trouble.Text) > maxText || len(refused.Why) > maxText || len(refused.GPUs) > 0 ||
		refused.Slots > jobs.MaxSlots || refused.Limit.Max < 0 {
		t.Errorf("trouble of %d bytes, refused %+v", len(trouble.Text), refused)
	}
}

// TestAllOfAMessageIsBounded checks that each message of a host, whatever it contains, has only known words,
// finite numbers, and short texts after Bound, so that a record that is made of it can be read again.
func TestAllOfAMessageIsBounded(t *testing.T) {
	for _, m := range []Message{&Hello{}, &Heartbeat{}, &Started{}, &Exits{}, &Withdrawn{}, &Refused{}, &Probed{},
		&Inspected{}, &Listed{}, &Trouble{}, &Chunk{}, &Stored{}} {
		for _, wild := range []wildValues{{200, math.NaN()}, {-1, math.Inf(-1)}, {math.MaxInt64, math.Inf(1)},
			{math.MinInt64, 1e308}} {
			wild.fill(reflect.ValueOf(m).Elem())
			Bound(m)
			checkBounded(t, m.Kind(), reflect.ValueOf(m))
		}
	}
}

// wildValues are values that no honest host sends.
type wildValues struct {
	number int64
	float  float64
}

func (w wildValues) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(w.number)
	case reflect.Uint8:
		v.SetUint(uint64(uint8(w.number)))
	case reflect.Float64:
		v.SetFloat(w.float)
	case reflect.String:
		v.SetString(strings.Repeat("w", 2*maxPath))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		w.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		w.fillEach(v.Len(), v.Index)
	case reflect.Array:
		w.fillEach(v.Len(), v.Index)
	case reflect.Struct:
		w.fillEach(v.NumField(), v.Field)
	}
}

func (w wildValues) fillEach(n int, element func(int) reflect.Value) {
	for i := range n {
		w.fill(element(i))
	}
}

func checkBounded(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	if _, isID := v.Interface().(jobs.AttemptID); isID { // admitted by what the journal has
		return
	}
	if word, ok := v.Interface().(interface{ MarshalText() ([]byte, error) }); ok {
		again := reflect.New(v.Type())
		reader, canRead := again.Interface().(interface{ UnmarshalText([]byte) error })
		b, err := word.MarshalText()
		if err == nil && canRead {
			err = reader.UnmarshalText(b)
		}
		if err != nil {
			t.Errorf("%s: %q: %v", name, b, err)
		}
	}
	switch v.Kind() {
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			t.Errorf("%s is %v", name, f)
		}
	case reflect.String:
		if v.Len() > maxPath {
			t.Errorf("%s has %d bytes", name, v.Len())
		}
	case reflect.Pointer:
		checkBounded(t, name, v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			checkBounded(t, name, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			checkBounded(t, name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Uint8, reflect.Int:
		if text, ok := v.Interface().(fmt.Stringer); ok && text.String() == "" {
			t.Errorf("%s is %d", name, v.Interface())
		}
	}
}
