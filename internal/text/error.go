package text

import "fmt"

// Error is an error with advice for the user.
type Error struct {
	Err    error
	Advice string // what to do; "": there is no advice
}

// Errorf formats an error without advice.
func Errorf(format string, args ...any) *Error { return &Error{Err: fmt.Errorf(format, args...)} }

// WithAdvice sets the advice and returns e.
func (e *Error) WithAdvice(format string, args ...any) *Error {
	e.Advice = fmt.Sprintf(format, args...)
	return e
}

// Error returns the message without the advice.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without the advice.
func (e *Error) Unwrap() error { return e.Err }
