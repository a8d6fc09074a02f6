package hosts

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// setSlots takes 8, "8", "cores" or "cores-1".
func setSlots(d *draft, v any) error {
	var s string
	switch v := v.(type) {
	case int64:
		s = strconv.FormatInt(v, 10)
	case string:
		s = strings.ReplaceAll(v, " ", "")
	default:
		return wrongKind(v, `a whole number, "cores" or "cores-1"`)
	}
	if s == "cores" {
		d.slots = &slotsWord{bare: true}
		return nil
	}
	digits, less := strings.CutPrefix(s, "cores-")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), less && n < 0:
		return fmt.Errorf(`must be a whole number, "cores" or "cores-1", not %q`, s)
	case n > jobs.MaxSlots:
		return fmt.Errorf("must be at most %d, not %s", jobs.MaxSlots, digits)
	case less:
		d.slots = &slotsWord{less: n}
	case n < 1:
		return fmt.Errorf("must be at least 1; to leave a host out, take it out of the file")
	default:
		d.slots = &slotsWord{fixed: n}
	}
	return nil
}

// slotRule settles `slots` and `reserve` of a host, own, over those of
// [defaults], def. Without either a core is left for people (K5). A warning or
// an error concerns the host's own `reserve`.
func slotRule(def, own *draft) (rule SlotRule, warning string, err error) {
	slots, reserve := own.slots, own.reserve
	if slots == nil {
		slots = def.slots
	}
	if reserve == nil {
		reserve = def.reserve
	}
	switch {
	case slots != nil && slots.fixed > 0:
		if own.reserve != nil {
			warning = fmt.Sprintf("reserve does nothing here: slots is the number %d", slots.fixed)
		}
		return SlotRule{Fixed: slots.fixed}, warning, nil
	case slots != nil && !slots.bare:
		if own.reserve == nil {
			return SlotRule{Less: slots.less}, "", nil
		}
		if own.slots != nil && *own.reserve != slots.less {
			return SlotRule{}, "", fmt.Errorf("reserve = %d contradicts slots = \"cores-%d\"; say one of them", *own.reserve, slots.less)
		}
		return SlotRule{Less: *own.reserve}, "", nil
	case reserve != nil:
		return SlotRule{Less: *reserve}, "", nil
	case slots != nil: // "cores", all of them
		return SlotRule{}, "", nil
	}
	return SlotRule{Less: 1}, "", nil
}
