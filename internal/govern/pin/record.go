package pin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"ken/capability"
	"ken/internal/store"
)

const formatVersion = 1

// A book is what is kept about a server. One that was read is not changed: a
// change begins with [book.copy].
type book struct {
	V       int                 `json:"v"`
	Server  string              `json:"server"`
	First   time.Time           `json:"first"` // when it was first listed
	Pins    map[string]*pinned  `json:"pins"`
	Waiting map[string]*waiting `json:"waiting,omitempty"`

	version int64 // of the key; 0: nothing is kept
}

// A pinned tool is one that was accepted, whether it is listed now or not.
type pinned struct {
	Hash    string    `json:"h"`
	Raw     sum       `json:"r"` // sum of the bytes that had this hash
	Exposed string    `json:"n"`
	By      string    `json:"by,omitempty"` // empty: with the first listing
	At      time.Time `json:"at,omitzero"`
}

// A waiting tool was listed and is not what was accepted.
type waiting struct {
	Hash  string    `json:"h"`
	Raw   sum       `json:"r"`
	Diff  string    `json:"d"`
	Since time.Time `json:"at"`
}

func (b *book) copy() *book {
	c := *b
	c.Pins, c.Waiting = maps.Clone(b.Pins), maps.Clone(b.Waiting)
	if c.Pins == nil {
		c.Pins = map[string]*pinned{}
	}
	if c.Waiting == nil {
		c.Waiting = map[string]*waiting{}
	}
	return &c
}

// fingerprint stands for a text of any length in a key.
func fingerprint(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:16])
}

const booksPrefix = "mcp/pin/"

func bookKey(server string) string { return store.Key("mcp", "pin", fingerprint(server)) }
func markKey(server string) string { return store.Key("mcp", "mark", fingerprint(server)) }
func namesKey() string             { return store.Key("mcp", "names") }

func textKey(server, hash string) string {
	return store.Key("mcp", "text", fingerprint(server), hash)
}

func textsPrefix(server string) string {
	return store.Key("mcp", "text", fingerprint(server)) + "/"
}

// decode reads a value of the desk.
func decode(item store.Item, into any) error {
	if err := item.Decode(formatVersion, into); err != nil {
		return damaged(item.Key, err)
	}
	return nil
}

func damaged(key string, err error) error {
	return &capability.Error{
		Kind: capability.Unavailable, Op: "read", Target: key, Err: err,
		Fix: "use the newest Ken version that wrote to this store, or disconnect and reconnect the server, which removes its pins",
	}
}

func decodeBook(item store.Item) (*book, error) {
	b := &book{version: item.Version}
	if err := decode(item, b); err != nil {
		return nil, err
	}
	if bookKey(b.Server) != item.Key {
		return nil, damaged(item.Key, errors.New("record and key name different servers"))
	}
	for name, p := range b.Pins {
		if p == nil || p.Hash == "" || p.Exposed == "" && !isOffers(b.Server) {
			return nil, damaged(item.Key, fmt.Errorf("the pin of %q is empty", name))
		}
	}
	for name, w := range b.Waiting {
		if w == nil || w.Hash == "" {
			return nil, damaged(item.Key, fmt.Errorf("the pending entry %q is empty", name))
		}
	}
	return b, nil
}

// mostServers bounds what a desk remembers; past it, it starts from scratch.
const mostServers = 512

// read returns the book of a server: one Get while nothing changed.
func (d *Desk) read(ctx context.Context, server string) (*book, error) {
	mark, _, err := d.store.Get(ctx, markKey(server))
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	have := d.known[server]
	d.mu.Unlock()
	if have != nil && have.version == mark.Version && mark.Version > 0 {
		return have, nil
	}
	item, there, err := d.store.Get(ctx, bookKey(server))
	if err != nil {
		return nil, err
	}
	if !there {
		return &book{V: formatVersion, Server: server}, nil
	}
	b, err := decodeBook(item)
	if err != nil {
		return nil, err
	}
	d.keep(b)
	return b, nil
}

// keep remembers a book, unless a newer one is there.
func (d *Desk) keep(b *book) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= mostServers {
		clear(d.known)
	}
	if have := d.known[b.Server]; have == nil || have.version <= b.version {
		d.known[b.Server] = b
	}
}

type storedNames struct {
	V     int               `json:"v"`
	Names map[string]string `json:"names"`
}

// readNames returns the names that are taken, for the caller to change.
func (d *Desk) readNames(ctx context.Context) (*names, int64, error) {
	item, there, err := d.store.Get(ctx, namesKey())
	if err != nil || !there {
		return &names{holder: map[string]string{}}, 0, err
	}
	var s storedNames
	if err := decode(item, &s); err != nil {
		return nil, 0, err
	}
	if s.Names == nil {
		s.Names = map[string]string{}
	}
	return &names{holder: s.Names}, item.Version, nil
}

// put adds the names to a batch, if they are still as they were read.
func (n *names) put(b *store.Batch, at int64) error {
	value, err := json.Marshal(storedNames{formatVersion, n.holder})
	if err != nil {
		return err
	}
	b.At(namesKey(), at)
	b.Put(namesKey(), value)
	return nil
}

// A storedTool is a tool byte by byte: what is no text must not become one.
type storedTool struct {
	Name, Title, Description, Input, Output, Annotations []byte
	Extra                                                []byte `json:",omitempty"`
}

func encodeText(tools []Tool) ([]byte, error) {
	out := make([]storedTool, len(tools))
	for i, t := range tools {
		out[i] = storedTool{[]byte(t.Name), []byte(t.Title), []byte(t.Description), t.Input, t.Output, t.Annotations, t.Extra}
	}
	return json.Marshal(out)
}

// text returns the tools of one hash as they were listed, or nil where they are
// not kept or not what they were.
func (d *Desk) text(ctx context.Context, server, hash string) ([]Tool, error) {
	item, there, err := d.store.Get(ctx, textKey(server, hash))
	if err != nil || !there {
		return nil, err
	}
	var stored []storedTool
	if err := json.Unmarshal(item.Value, &stored); err != nil {
		return nil, nil
	}
	tools := make([]Tool, len(stored))
	for i, t := range stored {
		tools[i] = Tool{string(t.Name), string(t.Title), string(t.Description), t.Input, t.Output, t.Annotations, t.Extra}
	}
	if hashOf(tools) != hash {
		return nil, nil
	}
	return tools, nil
}
