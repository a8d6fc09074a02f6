package jobs

import (
	"fmt"
	"strconv"
	"time"
)

// appendOptions writes the set options as a JSON object, always in this order,
// so that equal options have equal text; nothing at all when none is set.
func appendOptions(b []byte, o *Options) []byte {
	start := len(b)
	key := func(name string) { b = append(append(append(b, ',', '"'), name...), '"', ':') }
	text := func(name, v string) {
		if v != "" {
			key(name)
			b = appendJSONString(b, v)
		}
	}
	number := func(name string, v int64) {
		if v != 0 {
			key(name)
			b = strconv.AppendInt(b, v, 10)
		}
	}
	list := func(name string, n int, item func(int)) {
		for i := range n {
			if i == 0 {
				key(name)
			}
			b = append(b, "[,"[min(i, 1)])
			item(i)
		}
		if n > 0 {
			b = append(b, ']')
		}
	}
	text("queue", o.Queue)
	number("priority", int64(o.Priority))
	number("tries", int64(o.Tries))
	if o.RetryDelay != nil {
		key("retry_delay_ns")
		b = strconv.AppendInt(b, int64(*o.RetryDelay), 10)
	}
	number("timeout_ns", int64(o.Timeout))
	if !o.Deadline.IsZero() {
		text("deadline", storable(o.Deadline).Format(time.RFC3339Nano))
	}
	number("est_ns", int64(o.Estimate))
	list("tags", len(o.Tags), func(i int) { b = appendJSONString(b, o.Tags[i]) })
	if o.GPUs != 0 {
		key("gpus")
		b = append(b, o.GPUs.String()...)
	}
	number("mem", o.MemBytes)
	number("slots", int64(o.Slots))
	list("tokens", len(o.Tokens), func(i int) { b = appendJSONString(b, o.Tokens[i].String()) })
	list("after", len(o.After), func(i int) { b = strconv.AppendInt(b, int64(o.After[i]), 10) })
	list("after_on", len(o.AfterOn), func(i int) { b = strconv.AppendInt(b, int64(o.AfterOn[i]), 10) })
	if len(o.Env) > 0 {
		key("env")
		b = appendPairs(b, len(o.Env), func(i int) (string, string) { return o.Env[i].Name, o.Env[i].Value })
	}
	text("cwd", o.Cwd)
	text("setup", o.Setup)
	number("on_lost", int64(o.OnLost))
	if o.NoCopies {
		number("no_copies", 1)
	}
	list("hardness", len(o.Hardness), func(i int) { b = appendJSONString(b, o.Hardness[i]) })
	list("send", len(o.Send), func(i int) { b = appendJSONString(b, o.Send[i]) })
	list("return", len(o.Return), func(i int) { b = appendJSONString(b, o.Return[i]) })
	number("share", int64(o.Share))
	if o.QueuePriority != nil {
		key("queue_priority")
		b = strconv.AppendInt(b, int64(*o.QueuePriority), 10)
	}
	number("queue_slots", int64(o.QueueSlots))
	text("request", o.Request)
	text("file", o.File)
	if len(b) > start {
		b[start] = '{' // was the comma before the first key
		b = append(b, '}')
	}
	return b
}

// storable returns t in UTC, inside the years that RFC 3339 can write.
func storable(t time.Time) time.Time {
	t = t.UTC()
	if t.Year() < 1 {
		return time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC) // not the zero time, which means none
	}
	if t.Year() > 9999 {
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	return t
}

// decodeOptions reads what appendOptions wrote.
func (d *specDecoder) decodeOptions() (*Options, error) {
	var o Options
	var err error
	opening := byte('{')
	key := func(name string) bool {
		at := d.i
		if err != nil || d.peek() != opening {
			return false
		}
		d.i++
		if d.lit(`"`) && d.lit(name) && d.lit(`":`) {
			opening = ','
			return true
		}
		d.i = at
		return false
	}
	text := func(name string, to *string) {
		if key(name) {
			*to, err = d.text()
		}
	}
	number := func(name string) (n int64) {
		if key(name) {
			n, err = d.integer()
		}
		return n
	}
	texts := func(name string, to *[]string) {
		if key(name) {
			err = d.list(func() error {
				s, err := d.text()
				*to = append(*to, s)
				return err
			})
		}
	}
	text("queue", &o.Queue)
	o.Priority = int(number("priority"))
	o.Tries = int(number("tries"))
	if key("retry_delay_ns") {
		var n int64
		n, err = d.integer()
		o.RetryDelay = new(max(0, time.Duration(n)))
	}
	o.Timeout = time.Duration(number("timeout_ns"))
	deadline := ""
	if text("deadline", &deadline); err == nil && deadline != "" {
		o.Deadline, err = time.Parse(time.RFC3339Nano, deadline)
	}
	o.Estimate = time.Duration(number("est_ns"))
	texts("tags", &o.Tags)
	if key("gpus") {
		var n []byte
		if n, err = d.number(); err == nil {
			o.GPUs, err = parseGPUs(string(n))
		}
	}
	o.MemBytes = number("mem")
	o.Slots = int(number("slots"))
	var tokens []string
	if texts("tokens", &tokens); err == nil {
		o.Tokens, err = parseTokens(tokens)
	}
	if key("after") {
		err = d.list(func() error {
			n, err := d.integer()
			o.After = append(o.After, ID(n))
			return err
		})
	}
	if key("after_on") {
		err = d.list(func() error {
			n, err := d.integer()
			if err == nil && (n < 0 || n > int64(AfterFailure)) {
				err = fmt.Errorf("after_on %d is none of the conditions", n)
			}
			o.AfterOn = append(o.AfterOn, Condition(n))
			return err
		})
	}
	if key("env") {
		err = d.pairs(func(n, v string) { o.Env = append(o.Env, EnvVar{n, v}) })
	}
	text("cwd", &o.Cwd)
	text("setup", &o.Setup)
	if n := number("on_lost"); n < 0 || n > int64(OnLostWait) {
		err = fmt.Errorf("on_lost %d is none of the choices", n)
	} else {
		o.OnLost = OnLost(n)
	}
	o.NoCopies = number("no_copies") != 0
	texts("hardness", &o.Hardness)
	texts("send", &o.Send)
	texts("return", &o.Return)
	o.Share = int(number("share"))
	if key("queue_priority") {
		var n int64
		n, err = d.integer()
		o.QueuePriority = new(int(n))
	}
	o.QueueSlots = int(number("queue_slots"))
	text("request", &o.Request)
	text("file", &o.File)
	if err != nil {
		return nil, err
	}
	if opening == '{' || !d.lit("}") {
		return nil, d.want("an option in its place")
	}
	return &o, nil
}
