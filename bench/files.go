package main

import (
	"bufio"
	"io"
	"os"
	"time"

	"dcs-tui/jobs"
)

// lines reads a stream line by line.
type lines struct{ s *bufio.Scanner }

func newLines(r io.Reader) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	return &lines{s}
}

func (l *lines) next() (string, error) {
	if !l.s.Scan() {
		if err := l.s.Err(); err != nil {
			return "", err
		}
		return "", io.ErrUnexpectedEOF
	}
	return l.s.Text(), nil
}

// firstInstant returns the time that the first attempt of a job printed.
func firstInstant(runDir string, id jobs.ID) (time.Time, error) {
	b, err := os.ReadFile(jobs.AttemptFile(runDir, jobs.AttemptID{Job: id, N: 1}, jobs.FileOut))
	if err != nil {
		return time.Time{}, err
	}
	return instant(string(b))
}
