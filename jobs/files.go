package jobs

import (
	"fmt"
	"path/filepath"
)

// File is one of the at most four files of an attempt.
type File string

// The files of an attempt. FileReserved becomes FileExit by rename.
const (
	FileClaim    File = "claim"
	FileOut      File = "out"
	FileErr      File = "err"
	FileExit     File = "exit"
	FileReserved File = "reserved"
)

// ShardDir returns the directory under attempts/ that holds a job's files:
// "000" for jobs 1 to 999, "001" from 1000 (job div 1000).
func ShardDir(id ID) string { return fmt.Sprintf("%03d", int(id)/1000) }

// AttemptFile returns the path of one file of an attempt below dir, the
// directory that contains attempts/: dir/attempts/000/17.2.exit.
func AttemptFile(dir string, id AttemptID, f File) string {
	return filepath.Join(dir, "attempts", ShardDir(id.Job), id.String()+"."+string(f))
}
