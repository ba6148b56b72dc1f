package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Decode reads a value that is a JSON object with the version of its form under
// "v". It refuses another version and all that into has no place for: it might
// be what narrows. The error says what is wrong, and not of which key.
func (i Item) Decode(version int, into any) error {
	if !i.hasVersion(version) {
		var head struct {
			V int `json:"v"`
		}
		if err := json.Unmarshal(i.Value, &head); err != nil {
			return err
		}
		if head.V != version {
			return fmt.Errorf("has version %d, this program knows %d", head.V, version)
		}
	}
	d := json.NewDecoder(bytes.NewReader(i.Value))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if rest := bytes.TrimLeft(i.Value[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return errors.New("invalid text after top-level value")
	}
	return nil
}

// hasVersion reports whether the object begins with its version, as every Ken
// writes it. A value can have megabytes, so it is not read twice.
func (i Item) hasVersion(version int) bool {
	rest, ok := bytes.CutPrefix(i.Value, strconv.AppendInt([]byte(`{"v":`), int64(version), 10))
	return ok && len(rest) > 0 && (rest[0] == ',' || rest[0] == '}')
}
