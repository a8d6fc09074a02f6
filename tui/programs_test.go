package tui

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// copiedText presses y and returns the text that is put on the clipboard.
func copiedText(t *testing.T, m *model) string {
	t.Helper()
	var text string
	var do func(cmd tea.Cmd)
	do = func(cmd tea.Cmd) {
		switch msg := messageOf(cmd).(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				do(c)
			}
		default:
			if fmt.Sprintf("%T", msg) == "tea.setClipboardMsg" {
				text = fmt.Sprint(msg)
			}
			_, next := m.Update(msg)
			do(next)
		}
	}
	_, cmd := m.Update(keyMessage("y"))
	do(cmd)
	return text
}

// TestCopiedTextIsClean checks that y copies the item under the cursor without control characters,
// and shows a message that says what was copied.
func TestCopiedTextIsClean(t *testing.T) {
	src := sampleWith(func(snap *runview.Snapshot) {
		if snap.Detail != nil {
			snap.Detail.Command = "train\x1b]0;x\x07 1\nsecond"
		}
	})
	m, _ := screenOn(t, src, aQueued, 80, 24)
	equal(t, copiedText(t, m), "train␛]0;x␇ 1\nsecond", "a command is copied as")
	shows(t, m, "copied the command of job 50137: train␛]0;x␇ 1")
	press(t, m, "g l")
	checkContains(t, copiedText(t, m), "dcs-tui logs /nfs/data/proj/dcs-runs/sweep-20260314 50117.1",
		"copied in the output")
	shows(t, m, "copied the command that prints the stdout of job 50117: dcs-tui logs")
	for key, want := range map[string]string{"2": "ws01  up", "3": "exit 137  Killed",
		"5": "11:59:30 50120.3 has ended"} {
		t.Run(key, func(t *testing.T) {
			m := newScreen(t, sample(), 80, 24)
			press(t, m, key+" k")
			checkContains(t, copiedText(t, m), want, "copied in view %s", key)
		})
	}
	m.copyText("it", strings.Repeat("x", maxCopied+1))
	shows(t, m, "copied the beginning of it:")
}

// outsideProgramOf presses a key and returns the program that gets the terminal, without starting
// it.
func outsideProgramOf(t *testing.T, m *model, key string) *outsideProgram {
	t.Helper()
	_, cmd := m.Update(keyMessage(key))
	runCommands(t, m, cmd)
	return m.outside.Load()
}

// TestOutputOpensInThePager checks that E opens the output's file, or a private copy of a file that
// only its host has. No text of a job or host becomes part of a command. The copy is removed when
// the pager ends.
func TestOutputOpensInThePager(t *testing.T) {
	t.Setenv("PAGER", "")
	t.Setenv("LESS", "")
	dir := filepath.Join(t.TempDir(), "$(touch owned); it's")
	file := jobs.AttemptFile(dir, jobs.AttemptID{Job: aRunning, N: 1}, jobs.FileOut)
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("here\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	src := sampleWith(func(snap *runview.Snapshot) { snap.Run.Dir = dir })
	src.read = func(r runview.Read) (*runview.Piece, error) {
		return (&fakeFile{data: []byte("far\n"), over: true}).read(r)
	}
	m := newScreen(t, src, 80, 24)
	press(t, m, "l")
	l := outsideProgramOf(t, m, "E")
	if l == nil || strings.Join(l.Args, "|") != `/bin/sh|-c|trap : INT QUIT; less -R "$1"|sh|`+file {
		t.Fatalf("the pager is started as %q", l)
	}
	m.Update(outsideEnded{what: "the pager"})

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if l = outsideProgramOf(t, m, "E"); l == nil {
		t.Fatal("no pager for an output that only its host has")
	}
	temp := l.Args[len(l.Args)-1]
	info, err := os.Stat(temp)
	if b, _ := os.ReadFile(temp); err != nil || string(b) != "far\n" || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy is %q, %v, %v", b, info, err)
	}
	m.Update(outsideEnded{what: "the pager", temp: temp, err: errors.New("exit status 1")})
	if _, err := os.Stat(temp); err == nil || m.outside.Load() != nil {
		t.Errorf("after the pager: %v", err)
	}
	shows(t, m, "the pager has ended: exit status 1")
	src.read = func(runview.Read) (*runview.Piece, error) { return nil, errors.New("ws02 is away") }
	press(t, m, "E", "the output cannot be read: ws02 is away")
}

// TestShellOnAHost checks that ! opens a shell on the host under the cursor, or on the host of the
// job under the cursor.
func TestShellOnAHost(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	var asked []string
	m.opt.Shell = func(host string) (*exec.Cmd, error) {
		if asked = append(asked, host); host == "ws02" {
			return nil, errors.New("it was added later")
		}
		return exec.Command("true"), nil
	}
	press(t, m, "2")
	if l := outsideProgramOf(t, m, "!"); l == nil || !strings.Contains(l.hello, "A shell on ws01; exit goes back") {
		t.Errorf("it is %v", l)
	}
	m.Update(outsideEnded{what: "it"})
	press(t, m, "j !", "no shell on ws02: it was added later")
	press(t, m, "s", "sort:trouble")
	press(t, m, "1 g")
	outsideProgramOf(t, m, "!")
	m.Update(outsideEnded{what: "it"})
	press(t, m, "l")
	outsideProgramOf(t, m, "!")
	equal(t, strings.Join(asked, " "), "ws01 ws02 ws01 ws01", "the hosts with shells")
	m.Update(outsideEnded{what: "it"})
	press(t, m, "esc")
	m.jobs.moveToJob(aQueued)
	refresh(t, m)
	press(t, m, "!", "there is no host here to open a shell on")
}
