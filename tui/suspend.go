package tui

import (
	"bytes"
	"fmt"
	"os"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
)

// suspend stops the program until its shell continues it.
func (m *model) suspend() tea.Cmd {
	if !m.opt.shell() {
		m.complain("nothing could continue it: no shell with job control has started this screen (q leaves it, the run goes on)")
		return nil
	}
	if m.opt.Suspended != nil {
		m.opt.Suspended(true)
	}
	return tea.Suspend
}

// resumed is called when it goes on.
func (m *model) resumed() {
	if m.opt.Suspended != nil {
		m.opt.Suspended(false)
	}
}

// shell says whether a shell would notice that we stop: some ancestor in our session
// is outside our process group. Without one the kernel ignores the stop, and whoever
// waits to be continued waits for ever.
func (o *Options) shell() bool {
	session, err := unix.Getsid(0)
	if err != nil {
		return false
	}
	group := unix.Getpgrp()
	for pid, i := os.Getppid(), 0; pid > 1 && i < 64; pid, i = parent(pid), i+1 {
		if s, err := unix.Getsid(pid); err != nil || s != session {
			return false
		}
		if g, err := unix.Getpgid(pid); err != nil || g != group {
			return err == nil
		}
	}
	return false
}

// parent is the parent of a process; 0: not known.
func parent(pid int) (ppid int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	var state string
	fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &ppid)
	return ppid
}
