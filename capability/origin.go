package capability

import (
	"fmt"
	"strconv"
	"strings"
)

// An Origin points back to where a capability was found, closely enough to
// read it again. Which fields are set depends on Format and Location.
type Origin struct {
	Source   string   `json:"source"`             // [Source.Name] of the source that brought it
	Format   string   `json:"format"`             // "card", "skill", "jsonl", "openapi", …
	Location Location `json:"location,omitempty"` // where the source's bytes live
	Path     string   `json:"path,omitempty"`     // file, address or table, as the user would name it
	Line     int      `json:"line,omitempty"`     // first line, from 1; 0 when lines mean nothing
	Pointer  string   `json:"pointer,omitempty"`  // JSON pointer or row key within Path

	// Offset and Length delimit the bytes of one record in a larger file.
	Offset int64 `json:"offset,omitempty"`
	Length int64 `json:"length,omitempty"`
}

// A Location is the kind of place a source reads from.
type Location string

const (
	Local    Location = "local"
	Remote   Location = "remote"
	Database Location = "database"
)

// String returns the origin as people write places: path, then the line or the
// pointer.
func (o Origin) String() string {
	switch {
	case o.Path == "":
		return o.Source
	case o.Line > 0:
		return o.Path + ":" + strconv.Itoa(o.Line)
	case o.Pointer != "":
		return o.Path + "#" + o.Pointer
	}
	return o.Path
}

// Trust says how far the place a capability came from is believed. The zero
// value is the least.
type Trust uint8

const (
	TrustRemote    Trust = iota // from elsewhere: a server, an address
	TrustWorkspace              // came with the project that happens to be open
	TrustUser                   // put there, or named, by the person who runs Ken
	TrustBuiltin                // part of this program
)

var trustNames = [...]string{"remote", "workspace", "user", "builtin"}

func (t Trust) String() string {
	if int(t) < len(trustNames) {
		return trustNames[t]
	}
	return "remote"
}

// MarshalText writes the word for the level.
func (t Trust) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads it back; a word it does not know is an error.
func (t *Trust) UnmarshalText(b []byte) error {
	for i, name := range trustNames {
		if string(b) == name {
			*t = Trust(i)
			return nil
		}
	}
	return fmt.Errorf("trust %q: want one of %s", b, strings.Join(trustNames[:], ", "))
}

// A Severity grades what is wrong. The zero value is the gravest, so that
// something left ungraded is not overlooked.
type Severity uint8

const (
	Grave   Severity = iota // a problem that cost a capability, a finding that quarantines one
	Warning                 // worth a look; nothing was lost
)

func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// MarshalText writes "error" or "warning".
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads it back.
func (s *Severity) UnmarshalText(b []byte) error {
	switch string(b) {
	case "error":
		*s = Grave
	case "warning":
		*s = Warning
	default:
		return fmt.Errorf("severity %q: want error or warning", b)
	}
	return nil
}

// A Finding is one thing the text scan noticed. Grave ones put the capability
// into quarantine.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Field    string   `json:"field,omitempty"` // "description", "body", "schema", …
	Line     int      `json:"line,omitempty"`  // within the field, from 1
	Excerpt  string   `json:"excerpt,omitempty"`
}

func (f Finding) String() string {
	where := f.Field
	if f.Line > 0 {
		where += " line " + strconv.Itoa(f.Line)
	}
	return strings.TrimSpace(where + " " + f.Rule + ": " + f.Excerpt)
}

// A Problem is something wrong with what a source holds. It says what, where,
// and what to do about it, and costs nothing beyond what it names.
type Problem struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"` // stable, as in "duplicate-id"
	Subject  ID       `json:"subject,omitempty"`
	Origin   Origin   `json:"origin"`
	Message  string   `json:"message"`
	Fix      string   `json:"fix,omitempty"`
}

func (p Problem) String() string {
	var b strings.Builder
	if at := p.Origin.String(); at != "" {
		b.WriteString(at + ": ")
	}
	if p.Severity == Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(p.Message)
	if p.Fix != "" {
		b.WriteString("; " + p.Fix)
	}
	return b.String()
}
