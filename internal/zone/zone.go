// Package zone sets the local time zone of this process. The Go runtime knows the zones of the system.
// It does not know the rules that POSIX allows in $TZ, such as JST-9 or CET-1CEST,M3.5.0,M10.5.0/3, and
// silently uses UTC instead.
package zone

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"time"
)

// SetLocal sets time.Local by $TZ. It must be called before other goroutines use times. The error is
// for people; then local times are in UTC.
func SetLocal() error {
	tz := strings.TrimPrefix(os.Getenv("TZ"), ":")
	if tz == "" || tz == "UTC" || isKnown(tz) {
		return nil
	}
	location, ok := parsePOSIX(tz)
	if !ok {
		return fmt.Errorf("TZ=%q is not a time zone of this machine, so local times are in UTC", tz)
	}
	time.Local = location
	return nil
}

// isKnown reports whether the Go runtime understands a value of $TZ.
func isKnown(tz string) bool {
	if strings.HasPrefix(tz, "/") {
		data, err := os.ReadFile(tz)
		if err != nil {
			return false
		}
		_, err = time.LoadLocationFromTZData("Local", data)
		return err == nil
	}
	_, err := time.LoadLocation(tz)
	return err == nil
}

// parsePOSIX returns the location of a rule of POSIX (XBD, 8.3, TZ). The runtime reads such rules at the
// end of a file of zone information (RFC 8536, section 3.3), so it gets a file with nothing else.
func parsePOSIX(tz string) (*time.Location, bool) {
	const unparsed = 12345 // offset of the file's only zone, which applies if the rule is invalid
	if strings.ContainsAny(tz, "\n\x00") {
		return nil, false
	}
	location, err := time.LoadLocationFromTZData("Local", zoneFile(tz, unparsed))
	if err != nil {
		return nil, false
	}
	_, offset := time.Unix(0, 0).In(location).Zone()
	return location, offset != unparsed
}

// zoneFile returns a file of zone information with one zone, which begins in 1901, and a rule for all
// later times.
func zoneFile(rule string, offset int) []byte {
	const name = "LMT\x00"
	header := func(b []byte, counts ...uint32) []byte {
		b = append(b, "TZif2"...)
		b = append(b, make([]byte, 15)...)
		for _, n := range counts {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		return b
	}
	b := header(nil, 0, 0, 0, 0, 0, 0)                   // the part of version 1 is empty
	b = header(b, 0, 0, 0, 1, 1, uint32(len(name)))      // one transition, one zone
	b = binary.BigEndian.AppendUint64(b, 1<<64-1<<31)    // when: 1901
	b = append(b, 0)                                     // the transition is to zone 0
	b = binary.BigEndian.AppendUint32(b, uint32(offset)) // its offset
	b = append(b, 0, 0)                                  // no daylight saving time; its name is at 0
	b = append(b, name...)
	return append(b, "\n"+rule+"\n"...)
}
