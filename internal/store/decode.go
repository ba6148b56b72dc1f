package store

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Decode reads a value that is a JSON object with the version of its form under
// "v". It refuses another version and all that into has no place for: it might
// be what narrows. The error says what is wrong, and not of which key.
func (i Item) Decode(version int, into any) error {
	var head struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(i.Value, &head); err != nil {
		return err
	}
	if head.V != version {
		return fmt.Errorf("has version %d, this program knows %d", head.V, version)
	}
	d := json.NewDecoder(bytes.NewReader(i.Value))
	d.DisallowUnknownFields()
	return d.Decode(into) // that nothing follows was seen above
}
