package permission

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"ken/capability"
	"ken/internal/wholefile"
)

// ReadRules returns the rules of all clients. Without a file there are none.
func ReadRules(file string) ([]Rule, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var doc struct {
		Rules []Rule `json:"rules"`
	}
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "read the rules of clients", Target: file, Err: err, Fix: "fix the file, or remove it and connect each client again"}
	}
	return doc.Rules, nil
}

// WriteRules replaces the rules of all clients. Without rules there is no file.
func WriteRules(file string, rules []Rule) error {
	failed := func(err error) error {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return &capability.Error{Kind: capability.Unavailable, Op: "write the rules of clients", Target: file, Err: err, Fix: "see that its folder can be written and has room"}
	}
	if len(rules) == 0 {
		return failed(os.Remove(file))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(map[string]any{"rules": rules}); err != nil {
		return failed(err)
	}
	return failed(wholefile.Write(file, b.Bytes(), 0o600))
}
