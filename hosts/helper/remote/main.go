//go:build linux

package remote

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// The words by which our own binary is started on a host.
const (
	wordHost    = "__host"
	wordSlot    = "__slot"
	wordSum     = "__sum"
	wordSuspend = "__suspend"
)

// Main runs the host side of the program. args[0] is the word: "__host" (the
// helper: frames on standard input and output), "__slot" (a supervisor), "__suspend" or
// "__sum" (prints the SHA-256 of the executable in hex). It returns the exit
// status: 0, 1 after trouble (said on standard error), 2 for an unknown word.
func Main(args []string) int { return runWord(args, usual) }

func runWord(args []string, lim limits) int {
	word := ""
	if len(args) > 0 {
		word = args[0]
	}
	var err error
	switch word {
	case wordHost:
		err = hostMain(os.Stdin, os.Stdout, lim)
	case wordSlot:
		err = slotMain(args[1:], lim)
	case wordSuspend:
		err = suspendMain(args[1:])
	case wordSum:
		err = printSum(os.Stdout)
	default:
		fmt.Fprintf(os.Stderr, "dcs-tui: %q is not a command for people or hosts; see dcs-tui --help\n", word)
		return 2
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "dcs-tui %s: %v\n", word, err)
		return 1
	}
	return 0
}

// printSum hashes the running file itself, not whatever has its name by now.
func printSum(w io.Writer) error {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("reading our own executable: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("reading our own executable: %w", err)
	}
	_, err = fmt.Fprintf(w, "%x\n", h.Sum(nil))
	return err
}
