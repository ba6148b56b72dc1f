package link

import "errors"

// A Remedy is what a person can do about a server that does not work. The Fix of
// the error says it in words, which do not know the place of the definition.
type Remedy uint8

const (
	Unknown      Remedy = iota // nothing is known: Fix is empty or names ken doctor
	RunCommand                 // run the server's command by hand
	CheckAddress               // check the address and the sign-in
	Elsewhere                  // Fix says it, without the place of the definition
	Complete                   // Fix says all
)

// WithRemedy returns err with another remedy than its causes have.
func WithRemedy(err error, r Remedy) error { return &remedied{err, r} }

// RemedyOf returns the remedy for err, if one was given.
func RemedyOf(err error) (Remedy, bool) {
	e, ok := errors.AsType[*remedied](err)
	if !ok {
		return Unknown, false
	}
	return e.remedy, true
}

type remedied struct {
	error
	remedy Remedy
}

func (e *remedied) Unwrap() error { return e.error }
