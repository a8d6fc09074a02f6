package client

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// What a host prints cannot drive the terminal or hide itself.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain  text ":                       "plain  text",
		"\x1b[1;31mred\x1b[0m":               "red",
		"\x1b]0;title\x07after":              "after",
		"\x1b]8;;http://x\x1b\\link":         "link",
		"\x1b(Bx\x1b=y\x1bcz":                "xyz",
		"tab\there\r\n":                      "tab here",
		"bell\x07 nul\x00 del\x7f c1\u009b!": "bell nul del c1!",
		"evil\u202etxt.exe":                  "eviltxt.exe",
		"not utf-8: \xff\xfe":                "not utf-8: \uFFFD\uFFFD",
		"é 日本":                               "é 日本",
		"\x1b":                               "",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzClean: any bytes become one bounded, printable line.
func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\r\n")
	f.Add("\x1b]0;title")
	f.Add(strings.Repeat("日", 3000))
	f.Fuzz(func(t *testing.T, in string) {
		out := clean(in)
		if len(out) > maxLine || !utf8.ValidString(out) || strings.ContainsFunc(out, unicode.IsControl) {
			t.Errorf("clean(%q) = %q", in, out)
		}
	})
}

// FuzzAnswers: whatever the far end prints, reading its answers ends, and a line
// without the nonce is never one.
func FuzzAnswers(f *testing.F) {
	f.Add("Welcome\nN0 sys Linux x86_64\nN0 have /tmp\nN0 go\n")
	f.Add("no newline: N0 sys Linux x86_64\r\n")
	f.Add(strings.Repeat("x", maxNoise+1))
	f.Add(strings.Repeat("x\n", maxNoise))
	f.Fuzz(func(t *testing.T, in string) {
		a := newAnswers(strings.NewReader(in), "N0")
		for n := 0; ; n++ {
			_, rest, err := a.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, errNoise) && !errors.Is(err, errTerminal) {
					t.Error(err)
				}
				break
			}
			if n >= strings.Count(in, "N0 ") || strings.Contains(rest, "\n") {
				t.Fatalf("answer %d %q out of %q", n, rest, in)
			}
		}
		if a.seen > 2*maxNoise {
			t.Errorf("read %d bytes", a.seen)
		}
	})
}

// A helper's standard error is kept bounded, its lines too; the panic is found
// among what follows it.
func TestLastWordsAreBounded(t *testing.T) {
	n := 0
	long := strings.Repeat("y", 10*maxLine)
	text := "panic: lost in time\n" + strings.Repeat("goroutine\n", 100) + strings.Repeat("z", 100) + "\n" + long + "\nlast"
	l := listen(strings.NewReader(text), func(line string) {
		if n++; len(line) > maxLine {
			t.Errorf("a line of %d bytes", len(line))
		}
	})
	<-l.done
	if got := l.said(); got != ": panic: lost in time" {
		t.Errorf("said %q", got)
	}
	if n != 113 {
		t.Errorf("%d lines logged, want 113", n)
	}
	l = listen(strings.NewReader(strings.Repeat(long+"\n", 100)+"last\n\n"), nil)
	<-l.done
	if kept := len(l.crash) + len(l.last); kept > 2*maxLine || l.said() != ": last" {
		t.Errorf("%d bytes kept, said %q", kept, l.said())
	}
}

// The first line of a crash is quoted, however long the stacks and registers are that
// follow it.
func TestCrashIsQuotedByItsFirstLine(t *testing.T) {
	stacks := "\n" + strings.Repeat("goroutine 7 [select]:\nmain.wait(0xc0000b2000)\n\t/src/wait.go:17 +0x4f\n", 3000)
	registers := "rax    0x0\nrip    0x46e2a1\nfs     0x0\ngs     0x0\n"
	for text, want := range map[string]string{
		"panic: no such job\n" + stacks:                                                                "panic: no such job",
		"panic: first [recovered]\n\tpanic: second\n" + stacks:                                         "panic: first [recovered]",
		"reading the spool\nfatal error: all goroutines are asleep - deadlock!\n" + stacks:             "fatal error: all goroutines are asleep - deadlock!",
		"SIGABRT: abort\nPC=0x46e2a1 m=0 sigcode=0\n" + stacks + registers:                             "SIGABRT: abort",
		"SIGQUIT: quit\nPC=0x46e2a1 m=0 sigcode=0\n" + stacks + registers:                              "SIGQUIT: quit",
		"unexpected fault address 0x7f01\nfatal error: fault\n[signal SIGBUS: bus error]\n" + stacks:   "unexpected fault address 0x7f01",
		"runtime: failed to create new OS thread (have 5 already; errno=11)\nfatal error: newosproc\n": "runtime: failed to create new OS thread (have 5 already; errno=11)",
		"Warning: Permanently added 'ws01'\nws01: Permission denied (publickey).\n":                    "ws01: Permission denied (publickey).",
		"runtime is 3 hours\nnot found\n":                                                              "not found",
	} {
		l := listen(strings.NewReader(text), nil)
		<-l.done
		if got := l.said(); got != ": "+want {
			t.Errorf("of %.40q it quotes %q, want %q", text, got, want)
		}
	}
}
