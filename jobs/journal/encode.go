package journal

import (
	"strconv"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// AppendRecord adds the JSON of a record to b, in the form that encoding/json
// would give it, only faster. Text that is not valid UTF-8 has its bad bytes
// replaced by U+FFFD.
func AppendRecord(b []byte, r *jobs.Record) []byte {
	b = appendString(append(b, `{"k":`...), string(r.Kind))
	b = strconv.AppendInt(append(b, `,"t":`...), int64(r.At), 10)
	b = optInt(b, `,"j":`, int64(r.Job))
	b = optInt(b, `,"n":`, int64(r.N))
	b = optString(b, `,"h":`, r.Host)
	b = optInt(b, `,"slot":`, int64(r.Slot))
	b = optInt(b, `,"count":`, int64(r.Count))
	if r.Next != jobs.Queued {
		b = appendString(append(b, `,"next":`...), r.Next.String())
	}
	if r.Charged {
		b = append(b, `,"charged":true`...)
	}
	b = optInt(b, `,"retry":`, int64(r.Retry))
	b = optInt(b, `,"seq":`, r.Seq)
	if r.Outcome != nil {
		b = appendOutcome(append(b, `,"o":`...), r.Outcome)
	}
	b = optString(b, `,"why":`, r.Reason)
	b = optInt(b, `,"prio":`, int64(r.Priority))
	b = optInt(b, `,"started":`, int64(r.Started))
	b = optInt(b, `,"epoch":`, int64(r.Epoch))
	b = optString(b, `,"owner":`, r.Owner)
	if len(r.Files) > 0 {
		b = append(b, `,"files":[`...)
		for i, f := range r.Files {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(append(b, `{"name":`...), f.Name)
			b = strconv.AppendInt(append(b, `,"len":`...), f.Length, 10)
			b = strconv.AppendUint(append(b, `,"crc":`...), uint64(f.CRC), 10)
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	b = optString(b, `,"how":`, r.How)
	b = optString(b, `,"req":`, r.Request)
	if r.Spec != nil { // last: the decoder counts on it
		b = jobs.AppendSpecJSON(append(b, `,"spec":`...), r.Spec)
	}
	return append(b, '}')
}

func appendOutcome(b []byte, o *jobs.Outcome) []byte {
	b = strconv.AppendInt(append(b, `{"exit":`...), int64(o.Exit), 10)
	b = optString(b, `,"signal":`, o.Signal)
	b = strconv.AppendInt(append(b, `,"started":`...), int64(o.Started), 10)
	b = strconv.AppendInt(append(b, `,"ended":`...), int64(o.Ended), 10)
	b = optInt(b, `,"cpu_ns":`, int64(o.CPU))
	b = optInt(b, `,"suspended_ns":`, int64(o.Suspended))
	b = optInt(b, `,"max_rss":`, o.MaxRSSBytes)
	if o.TimedOut {
		b = append(b, `,"timed_out":true`...)
	}
	if o.Stopped {
		b = append(b, `,"stopped":true`...)
	}
	if o.DiskFull {
		b = append(b, `,"disk_full":true`...)
	}
	if o.Unreturned {
		b = append(b, `,"unreturned":true`...)
	}
	b = optString(b, `,"memory":`, o.Memory)
	b = optInt(b, `,"files":`, int64(o.Files))
	b = optInt(b, `,"left_children":`, int64(o.LeftChildren))
	b = optString(b, `,"error":`, o.Error)
	b = optString(b, `,"last_line":`, o.LastLine)
	return append(b, '}')
}

func optInt(b []byte, key string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, key...), n, 10)
}

func optString(b []byte, key, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(append(b, key...), s)
}

// appendString quotes s as JSON. No newline gets out: a line is a line.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, n := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		b = append(b, s[from:i]...)
		switch {
		case c >= utf8.RuneSelf:
			b = append(b, "\uFFFD"...)
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, `\u00`...)
			b = append(b, hexits[c>>4], hexits[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
