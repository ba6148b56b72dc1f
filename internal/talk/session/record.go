package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"ken/capability"
	"ken/internal/store"
	"ken/llm"
)

const formatVersion = 1

// A record is a head as it is stored.
type record struct {
	V     int    `json:"v"`
	Head  Head   `json:"head"`
	Place string `json:"place"` // in the list
	Gone  bool   `json:"gone,omitempty"`
}

// A stored is an entry as it is stored.
type stored struct {
	V int `json:"v"`
	Entry
}

func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	// The schemas of tools stand in entries as they are: they shall not come
	// back with other bytes than they were sent in.
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func encodeHead(r record) ([]byte, error) {
	data, err := encode(r)
	if err != nil {
		return nil, fault(capability.Invalid, "keep", r.Head.ID, err, "")
	}
	if len(data) > 64<<10 {
		return nil, fault(capability.Invalid, "keep", r.Head.ID, fmt.Errorf("%w: its head has %d bytes, the limit is %d", ErrTooLarge, len(data), 64<<10), "give it a shorter title")
	}
	return data, nil
}

func decodeHead(item store.Item) (record, error) {
	var r record
	err := strict(item, &r, &r.V)
	return r, err
}

func decodeEntry(item store.Item) (Entry, error) {
	var e stored
	err := strict(item, &e, &e.V)
	clip(e.Blocks)
	e.Blocks, e.Tools, e.Offers = slices.Clip(e.Blocks), slices.Clip(e.Tools), slices.Clip(e.Offers)
	return e.Entry, err
}

// clip leaves no room in what several readers share: what one of them adds to
// it goes elsewhere.
func clip(blocks []llm.Block) {
	for i := range blocks {
		b := &blocks[i]
		b.Tools = slices.Clip(b.Tools)
		if b.Result != nil {
			clip(b.Result.Blocks)
			b.Result.Blocks = slices.Clip(b.Result.Blocks)
		}
	}
}

// strict reads JSON of exactly this version, which it finds in v. A field that
// is not known is refused: to leave it out would be to write it away.
func strict(item store.Item, into any, v *int) error {
	d := json.NewDecoder(bytes.NewReader(item.Value))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows it")
		}
	} else {
		// What a newer version wrote need not read as this one.
		var head struct {
			V int `json:"v"`
		}
		if json.Unmarshal(item.Value, &head) == nil {
			*v = head.V
		}
	}
	switch {
	case *v > formatVersion:
		return &capability.Error{
			Kind: capability.Unavailable, Op: "read", Target: item.Key,
			Err: fmt.Errorf("%w: record version is %d, this program knows %d", ErrNewer, *v, formatVersion),
			Fix: "use the newest Ken that wrote to this session; nothing was changed",
		}
	case err == nil && *v != formatVersion:
		err = fmt.Errorf("record version is %d, this program knows %d", *v, formatVersion)
	}
	if err != nil {
		return damaged(item.Key, err)
	}
	return nil
}

func damaged(key string, err error) error {
	return &capability.Error{
		Kind: capability.Internal, Op: "read", Target: key, Err: fmt.Errorf("the session is damaged: %w", err),
		Fix: "go on in a new session; the others are not touched",
	}
}
